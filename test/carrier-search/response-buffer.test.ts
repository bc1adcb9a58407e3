import { mkdtempSync, readdirSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Context, Effect, Layer, type Scope, Stream } from "effect"
import { afterAll, assert, describe, it } from "vitest"
import { ResponseBuffers } from "#actors/carrier-search/response-buffer.ts"
import {
  type AnswerBufferOptions,
  answerBufferFile,
} from "#adapters/carrier-search/response-buffer-file.ts"

const dir = mkdtempSync(join(tmpdir(), "almanac-buffer-"))
afterAll(() => rmSync(dir, { recursive: true }))

/** Limits so small that a few bytes go through a file. */
const small = { answer_bytes_max: 1000, memory_bytes_max: 3000 }

const buffers = (options: Partial<AnswerBufferOptions> = {}) =>
  Layer.build(answerBufferFile({ dir, ...small, ...options })).pipe(
    Effect.map((built) => Context.get(built, ResponseBuffers)),
  )

const run = <A, E>(effect: Effect.Effect<A, E, Scope.Scope>) =>
  Effect.runPromise(Effect.scoped(effect))

/** A generator of numbers in [0, 1), deterministic in its seed. */
const seeded = (seed: number) => {
  let state = seed
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    return state / 2 ** 32
  }
}

const bytesOf = (random: () => number, length: number) =>
  Uint8Array.from({ length }, () => Math.floor(random() * 256))

describe("an answer that waits", () => {
  const seed = 20_261_122
  it(`is read as it was written, in pieces of any size (seed ${seed})`, async () => {
    const random = seeded(seed)
    await run(
      Effect.gen(function* () {
        const in_files = yield* buffers()
        const in_memory = yield* buffers({ answer_bytes_max: 2 ** 22, memory_bytes_max: 2 ** 22 })
        for (let round = 0; round < 40; round++) {
          const pieces = Array.from({ length: Math.floor(random() * 40) }, () =>
            bytesOf(random, Math.floor(random() * (round % 2 === 0 ? 60 : 60_000))),
          )
          const whole = Buffer.concat(pieces)
          const length = Math.floor(whole.length * random())
          yield* Effect.scoped(
            Effect.gen(function* () {
              const buffer = yield* (round % 4 < 2 ? in_files : in_memory).open
              for (const piece of pieces) yield* buffer.add(piece)
              assert.equal(buffer.length(), whole.length)
              const read = Buffer.from(yield* Stream.mkUint8Array(buffer.read(length)))
              assert.isTrue(read.equals(whole.subarray(0, length)), `round ${round}`)
              const all = Buffer.from(yield* Stream.mkUint8Array(buffer.read(whole.length)))
              assert.isTrue(all.equals(whole), `round ${round}`)
            }),
          )
        }
      }),
    )
    assert.deepEqual(readdirSync(dir), [])
  })

  it("makes no file while there is room in memory, for it and for all together", async () => {
    const nowhere = join(dir, "nowhere")
    await run(
      Effect.gen(function* () {
        const { open } = yield* buffers({ dir: nowhere })
        const some = new Uint8Array(900)
        const first = yield* open
        yield* first.add(some)
        yield* (yield* open).add(some)
        yield* (yield* open).add(some)
        // The fourth is as small as the others, but memory is full, so it goes to a file.
        const fourth = yield* Effect.flip((yield* open).add(some))
        assert.equal(fourth._tag, "BufferFailed")
      }),
    )
    // Closed buffers no longer count.
    await run(
      Effect.gen(function* () {
        const { open } = yield* buffers({ dir: nowhere })
        for (let n = 0; n < 10; n++) {
          yield* Effect.scoped(Effect.flatMap(open, (one) => one.add(new Uint8Array(900))))
        }
      }),
    )
  })

  it("fails, and says why, where a file cannot be made", async () => {
    const failure = await run(
      Effect.gen(function* () {
        const { open } = yield* buffers({ dir: join(dir, "nowhere") })
        return yield* Effect.flip((yield* open).add(new Uint8Array(1001)))
      }),
    )
    assert.match(failure.detail, /ENOENT/)
  })
})
