import { readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Exit } from "effect"
import { openMark, readMark, sha256 } from "#journal"
import { temporaryFolder } from "../world/programs/nats.ts"

const silent = () => undefined
const bytes = (text: string) => Buffer.from(text)

const inFile = <A, E>(test: (path: string) => Effect.Effect<A, E>) =>
  Effect.scoped(Effect.flatMap(temporaryFolder, (folder) => test(join(folder, "log-mark"))))

/** Opens the mark, advances it through these positions, and closes it. */
const advanced = (path: string, ...positions: ReadonlyArray<number>) =>
  Effect.scoped(
    Effect.gen(function* () {
      const mark = yield* openMark(path, silent)
      mark.identify({ stream: "LOG", stream_created: "2026-11-28T00:00:00Z" })
      for (const position of positions) mark.advance(position, bytes(`commit ${position}`))
    }),
  )

const flip = (path: string, at: number) => {
  const content = readFileSync(path)
  content[at] = (content[at] ?? 0) ^ 1
  writeFileSync(path, content)
}

describe("the high-water mark", () => {
  it.live("is exact once its process has ended", () =>
    inFile((path) =>
      Effect.gen(function* () {
        yield* advanced(path, 1, 2, 7)
        const mark = yield* readMark(path)
        assert.deepInclude(mark, { position: 7, hash: sha256("commit 7"), stream: "LOG" })
      }),
    ),
  )

  it.live("is at most some milliseconds behind where its process is killed", () =>
    inFile((path) =>
      Effect.scoped(
        Effect.gen(function* () {
          const mark = yield* openMark(path, silent)
          mark.advance(3, bytes("commit 3"))
          const read = Effect.map(readMark(path), (found) => found?.position)
          // The file's current content is what a kill would leave.
          yield* Effect.sleep("20 millis").pipe(
            Effect.andThen(read),
            Effect.repeat({ until: (position) => position === 3, times: 100 }),
          )
          assert.equal(yield* read, 3)
        }),
      ),
    ),
  )

  it.live("never goes back for an earlier commit", () =>
    inFile((path) =>
      Effect.gen(function* () {
        yield* advanced(path, 9)
        yield* advanced(path, 4)
        assert.equal((yield* readMark(path))?.position, 9)
      }),
    ),
  )

  it.live("goes back when it is settled on a restored log", () =>
    inFile((path) =>
      Effect.gen(function* () {
        yield* advanced(path, 9)
        yield* Effect.scoped(
          Effect.gen(function* () {
            const mark = yield* openMark(path, silent)
            yield* mark.settle({ position: 4, hash: "restored", restore_id: "r1" })
          }),
        )
        const mark = yield* readMark(path)
        assert.deepInclude(mark, { position: 4, hash: "restored", restore_id: "r1" })
      }),
    ),
  )

  it.live("keeps what its process has appended when it is settled on an earlier commit", () =>
    inFile((path) =>
      Effect.gen(function* () {
        yield* Effect.scoped(
          Effect.gen(function* () {
            const mark = yield* openMark(path, silent)
            mark.advance(6, bytes("commit 6"))
            yield* mark.settle({ position: 5, hash: "before", restore_id: "r1" })
          }),
        )
        const mark = yield* readMark(path)
        assert.deepInclude(mark, { position: 6, hash: sha256("commit 6"), restore_id: "r1" })
      }),
    ),
  )

  it.live("survives a torn write: the one before it counts", () =>
    inFile((path) =>
      Effect.gen(function* () {
        yield* advanced(path, 1)
        yield* advanced(path, 2)
        const whole = readFileSync(path)
        // If either slot is torn, the other is intact.
        for (const slot of [0, 1]) {
          writeFileSync(path, whole)
          flip(path, slot * 512 + 100)
          const position = (yield* readMark(path))?.position
          assert.include([1, 2], position)
        }
      }),
    ),
  )

  it.live("says so where it is damaged, and is not taken for an empty one", () =>
    inFile((path) =>
      Effect.gen(function* () {
        yield* advanced(path, 1)
        yield* advanced(path, 2)
        flip(path, 100)
        flip(path, 612)
        assert.isTrue(Exit.isFailure(yield* Effect.exit(readMark(path))))
        assert.isTrue(Exit.isFailure(yield* Effect.exit(Effect.scoped(openMark(path, silent)))))
      }),
    ),
  )

  it.live("is nothing where there is no file", () =>
    inFile((path) => Effect.map(readMark(path), (mark) => assert.isUndefined(mark))),
  )
})
