/**
 * A disk that fills up at each page that a commit may need. A start on the state that a kill leaves
 * serves every commit acknowledged before that, or reports it as missing.
 */
import { cpSync, rmSync } from "node:fs"
import { join } from "node:path"
import { Effect, Exit, Layer, Logger } from "effect"
import { afterAll, expect, it } from "vitest"
import { host } from "#actors/host.ts"
import { Log } from "#events/log.ts"
import { exclusive, generations } from "#server/session.ts"
import { count } from "../../world/log/generation-log.ts"
import { describeWithSmallDisk, fillDisk } from "../../world/programs/small-disk.ts"
import { cleanUp, newFolder } from "../../world/server/server.ts"
import { runCase } from "./case.ts"
import { type Acknowledged, settingsOf } from "./masters.ts"

const disk_bytes = 96 * 1024 * 1024
const page_bytes = 4096
/** Free pages to try, from none up; a commit and its bookkeeping take some of them. */
const pages_max = 24
/** Commits before the disk is full, and at most afterwards. */
const before = 6
const after_max = 400
/** Aggregates written in turn; their commits grow with the ids they remember. */
const aggregates = 3
/** Milliseconds after which a commit counts as not acknowledged. */
const commit_ms_max = 2_000

afterAll(cleanUp)

/** Commits until one is not acknowledged; appends the others to `acknowledged`. */
const work = Effect.fnUntraced(function* (
  from: number,
  to: number,
  acknowledged: Array<Acknowledged>,
) {
  const log = yield* Log
  for (let n = from; n < to; n++) {
    const id = `counter-${n % aggregates}`
    const done = yield* count(id, n).pipe(Effect.timeout(commit_ms_max), Effect.exit)
    if (Exit.isFailure(done)) return n
    const last = yield* log.load(`test.counter.${id}`)
    if (last?.position !== done.value) throw new Error(`${id} is not at ${done.value}`)
    const { position, stream, hash } = last
    acknowledged.push({ position, stream, hash })
  }
  return to
})

/** Problems of a start after the disk filled up with this many pages left. */
const faultsOf = Effect.fnUntraced(function* (disk: string, copies: string, pages: number) {
  const data_dir = join(disk, "data")
  const killed = join(copies, "killed")
  rmSync(data_dir, { recursive: true, force: true })
  rmSync(killed, { recursive: true, force: true })
  const acknowledged: Array<Acknowledged> = []
  const running = Effect.gen(function* () {
    yield* work(1, before, acknowledged)
    const files = fillDisk(disk, pages * page_bytes)
    const reached = yield* work(before, before + after_max, acknowledged)
    // A copy as a kill would leave it: nothing is in flight any more.
    cpSync(data_dir, killed, { recursive: true })
    for (const file of files) rmSync(file, { force: true })
    return reached
  })
  const settings = settingsOf(data_dir)
  const reached = yield* Effect.provide(
    running,
    Layer.fresh(Layer.provideMerge(host, exclusive(settings))),
    { local: true },
  )
  const { name: stream } = generations(settings)
  const place = { data_dir: killed, stream, earlier: killed, other: killed }
  const { lost, faults } = yield* runCase({ place, acknowledged }, [], join(copies, "case"))
  return { is_full: reached < before + after_max, lost, faults }
})

describeWithSmallDisk("a log whose disk becomes full at any page", disk_bytes, (disk) => {
  it("serves all that was acknowledged, after a kill", async () => {
    const copies = newFolder()
    const faults: Array<string> = []
    let full = 0
    for (let pages = 0; pages < pages_max; pages++) {
      const one = faultsOf(disk, copies, pages).pipe(Effect.provide(Logger.layer([])))
      const found = await Effect.runPromise(one)
      if (found.is_full) full++
      faults.push(...found.faults.map((fault) => `${pages} pages: ${fault}`))
    }
    expect([faults, full > pages_max / 2]).toEqual([[], true])
  }, 600_000)
})
