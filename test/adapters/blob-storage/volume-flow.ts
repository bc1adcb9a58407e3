/**
 * Streams one large blob in and out and prints the memory of the process: before, and at its peak.
 * Run by blob-volume.test.ts with the size in MiB.
 */
import { readFileSync, writeSync } from "node:fs"
import { Effect } from "effect"
import { noise, put, readAll } from "../../contract/blob-storage/engine-bytes.ts"
import { openEngine } from "../../world/blob-storage/volume-folder.ts"

const [dir = "", mebibytes = "1"] = process.argv.slice(2)

const memory = (name: "VmRSS" | "VmHWM") => {
  const line = new RegExp(`${name}:\\s+(\\d+) kB`).exec(readFileSync("/proc/self/status", "utf8"))
  return Math.round(Number(line?.[1]) / 1024)
}

const piece = noise(1, 64 * 1024)
function* pieces(count: number) {
  for (let number = 1; number <= count; number++) {
    const part = piece.slice()
    part[0] = number
    yield part
  }
}

const program = Effect.gen(function* () {
  const engine = yield* openEngine(dir)
  yield* Effect.promise(async () => {
    const warm = await put(engine, pieces(16 * 16))
    await readAll(engine, warm.id)
    const before_mib = memory("VmRSS")
    const { id, meta } = await put(engine, pieces(16 * Number(mebibytes)))
    const { windows } = await engine.get(id, {}, 2000n)
    let read = 0
    for await (const { length } of windows()) read += length
    const highest_mib = memory("VmHWM")
    writeSync(1, JSON.stringify({ size: Number(meta.size), read, before_mib, highest_mib }))
  })
})
await Effect.runPromise(Effect.scoped(program))
