import {
  closeSync,
  cpSync,
  existsSync,
  openSync,
  readdirSync,
  readSync,
  rmSync,
  truncateSync,
  writeSync,
} from "node:fs"
import { join } from "node:path"
import { assert, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { acceptLoss, lost_folder } from "#adapters/log/accept-loss.ts"
import { lossFindings } from "#adapters/log/findings.ts"
import { Log } from "#events/log.ts"
import { countMissing, LogGuard, mergeMissing } from "#events/log-guard.ts"
import { preserved_folder } from "#journal"
import { describeWithServer, temporaryFolder } from "../world/programs/nats.ts"
import {
  blocksOf,
  crashImage,
  guardedLog,
  openLog,
  sizeOf,
  streamFolder,
  write,
} from "./guarded.ts"

const commits = 60

const flip = (path: string, at: number) => {
  const file = openSync(path, "r+")
  const byte = Buffer.alloc(1)
  readSync(file, byte, 0, 1, at)
  byte[0] = (byte[0] ?? 0) ^ 0xff
  writeSync(file, byte, 0, 1, at)
  closeSync(file)
}

const lastBlock = (folder: string) => {
  const last = blocksOf(folder).at(-1)
  if (last === undefined) throw new Error("The log has no block.")
  return last
}

interface Damage {
  readonly name: string
  readonly harm: (folder: string, older: string) => void
}

/** Damage that was reproduced on a running server, and variations of it. */
const damages: ReadonlyArray<Damage> = [
  {
    name: "a byte in the middle of a block",
    harm: (folder) => flip(lastBlock(folder), Math.floor(sizeOf(lastBlock(folder)) / 2)),
  },
  {
    name: "a byte in the middle of a block, and the index",
    harm: (folder) => {
      flip(lastBlock(folder), Math.floor(sizeOf(lastBlock(folder)) / 2))
      rmSync(join(streamFolder(folder), "msgs", "index.db"), { force: true })
    },
  },
  {
    name: "the last 30 bytes",
    harm: (folder) => truncateSync(lastBlock(folder), sizeOf(lastBlock(folder)) - 30),
  },
  {
    name: "the stream's folder",
    harm: (folder) => rmSync(streamFolder(folder), { recursive: true }),
  },
  {
    name: "the account's folder",
    harm: (folder) => rmSync(join(streamFolder(folder), "..", ".."), { recursive: true }),
  },
  {
    name: "the messages' folder",
    harm: (folder) => rmSync(join(streamFolder(folder), "msgs"), { recursive: true }),
  },
  {
    name: "the stream's description",
    harm: (folder) => flip(join(streamFolder(folder), "meta.inf"), 10),
  },
  {
    name: "everything after an older copy of the store",
    harm: (folder, older) => {
      rmSync(join(folder, "nats"), { recursive: true })
      cpSync(join(older, "nats"), join(folder, "nats"), { recursive: true })
    },
  },
]

const found = Effect.gen(function* () {
  const guard = yield* LogGuard
  const log = yield* Log
  const findings = guard.findings()
  const missing = mergeMissing(findings.flatMap((finding) => finding.missing))
  return { findings, missing, head: yield* log.head(""), trouble: guard.problem() }
})

describeWithServer("a log that lost commits on disk", () => {
  it.live(
    "is read-only, and names every missing position",
    () =>
      Effect.gen(function* () {
        const folder = yield* temporaryFolder
        const [live, older, image] = ["live", "older", "image"].map((name) => join(folder, name))
        yield* crashImage(`${live}`, `${older}`, commits / 2)
        yield* crashImage(`${live}`, `${image}`, commits / 2)
        for (const { name, harm } of damages) {
          const damaged = join(folder, name.replaceAll(/[^a-z]/g, "-"))
          cpSync(`${image}`, damaged, { recursive: true })
          harm(damaged, `${older}`)
          yield* Effect.gen(function* () {
            const [finding] = yield* lossFindings(damaged, join(damaged, "blobs"))
            assert.equal(finding?.status, "fail", name)
            const { missing, head, trouble } = yield* found
            assert.include(trouble, "read-only", name)
            // The missing commits and those up to the head are all that was acknowledged.
            assert.equal(countMissing(missing) + head, commits, name)
            assert.equal(missing.at(-1)?.to, commits, name)
            const refused = yield* Effect.flip(write(1))
            assert.include(JSON.stringify(refused), "read-only", name)
          }).pipe(Effect.provide(guardedLog(damaged)), Effect.scoped)
          if (existsSync(streamFolder(`${image}`)) && !name.includes("folder")) {
            assert.isTrue(existsSync(join(damaged, preserved_folder)), `${name}: blocks are kept`)
          }
        }
      }).pipe(Effect.scoped),
    120_000,
  )

  it.live("is whole after a kill alone, takes commits, and keeps no blocks", () =>
    Effect.gen(function* () {
      const folder = yield* temporaryFolder
      const [live, image] = ["live", "image"].map((name) => join(folder, name))
      yield* crashImage(`${live}`, `${image}`, commits)
      yield* Effect.gen(function* () {
        assert.isUndefined((yield* found).trouble)
        assert.equal((yield* lossFindings(`${image}`, join(`${image}`, "blobs")))[0]?.status, "ok")
        assert.equal(yield* write(1), commits + 1)
      }).pipe(Effect.provide(guardedLog(`${image}`)), Effect.scoped)
      assert.isFalse(existsSync(join(`${image}`, preserved_folder)))
    }).pipe(Effect.scoped),
  )

  it.live("goes on once the loss was accepted, also with what knew more", () =>
    Effect.gen(function* () {
      const folder = yield* temporaryFolder
      const [live, image] = ["live", "image"].map((name) => join(folder, name))
      yield* crashImage(`${live}`, `${image}`, commits)
      truncateSync(lastBlock(`${image}`), Math.floor(sizeOf(lastBlock(`${image}`)) / 2))
      const { missing, head } = yield* found.pipe(
        Effect.provide(guardedLog(`${image}`)),
        Effect.scoped,
      )
      assert.isAbove(countMissing(missing), 0)
      const restore_id = "repair-1"
      const loss = { data_dir: `${image}`, restore_id, missing, reason: "a test" }
      yield* Effect.scoped(Effect.provide(acceptLoss(loss), openLog(`${image}`)))
      yield* Effect.gen(function* () {
        assert.isUndefined((yield* found).trouble)
        const guard = yield* LogGuard
        // A read model built before the loss is ahead of the log, so it is rebuilt.
        assert.isTrue(
          yield* guard.isExplained({ name: "a read model", position: commits }, head + 1),
        )
        assert.equal(yield* write(1), head + 2)
      }).pipe(Effect.provide(Layer.fresh(guardedLog(`${image}`))), Effect.scoped)
      assert.include(readdirSync(join(`${image}`, lost_folder, restore_id)), "blocks")
    }).pipe(Effect.scoped),
  )
})
