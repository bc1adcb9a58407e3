/** An abandoned search of a mirror, and the searches that run next to it. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { pathToFileURL } from "node:url"
import { Effect, Stream } from "effect"
import { expect, it } from "vitest"
import { Registry } from "#actors/carrier-search/registry.ts"
import { registryMirror } from "#adapters/carrier-search/mirror.ts"

/** Responds to each request after 80 ms with a piece; each piece has one more carrier. */
const slow = `
import { serveCalls } from "${new URL("../../packages/threads/call.ts", import.meta.url).href}"
const pause = new Int32Array(new SharedArrayBuffer(4))
let done = 0
serveCalls(() => {
  Atomics.wait(pause, 0, 0, 80)
  return { piece: { done: ++done, found: 0, rows: new Uint8Array(0) } }
})
`

it("a search that is given up takes no other one with it, however late", async () => {
  const folder = mkdtempSync(join(tmpdir(), "almanac-mirror-"))
  const file = join(folder, "slow.ts")
  writeFileSync(file, slow)
  const thread = { program: pathToFileURL(file), answer_ms_max: 2000 }
  const run = Effect.gen(function* () {
    const { search } = yield* Registry
    yield* Stream.runHead(search({ start: 1, end: 100 }, "csv"))
    // Its pieces take longer than a thread may be silent, but it runs on the same thread.
    return yield* Stream.runLast(search({ start: 1, end: 30 }, "csv"))
  })
  const last = await Effect.runPromise(
    Effect.provide(run, registryMirror({ path: join(folder, "none"), thread })),
  )
  rmSync(folder, { recursive: true, force: true })
  expect(last).toMatchObject({ value: { done: 30 } })
})
