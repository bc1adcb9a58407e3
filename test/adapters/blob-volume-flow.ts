/**
 * Streams one large blob in and out again and prints the process's memory: before, and its highest.
 * Run by blob-volume.test.ts with the size in MiB.
 */
import { readFileSync, writeSync } from "node:fs"
import { Effect, Stream } from "effect"
import { noise, put, readAll } from "../contract/blob-store-bytes.ts"
import { openStore } from "./blob-volume-folder.ts"

const [dir = "", mebibytes = "1"] = process.argv.slice(2)

const memory = (name: "VmRSS" | "VmHWM") => {
  const line = new RegExp(`${name}:\\s+(\\d+) kB`).exec(readFileSync("/proc/self/status", "utf8"))
  return Math.round(Number(line?.[1]) / 1024)
}

const piece = noise(1, 64 * 1024)
const pieces = (count: number) =>
  Stream.range(1, count).pipe(
    Stream.rechunk(1),
    Stream.map((number) => {
      const part = piece.slice()
      part[0] = number
      return part
    }),
  )

const program = Effect.gen(function* () {
  const store = yield* openStore(dir)
  const warm = yield* put(store, pieces(16 * 16))
  yield* readAll(store, warm.id)
  const before_mib = memory("VmRSS")
  const { id, size } = yield* put(store, pieces(16 * Number(mebibytes)))
  const { bytes } = yield* store.get(id)
  let read = 0
  yield* Stream.runForEach(bytes, (part) =>
    Effect.sync(() => {
      read += part.length
    }),
  )
  const highest_mib = memory("VmHWM")
  writeSync(1, JSON.stringify({ size: Number(size), read, before_mib, highest_mib }))
})
await Effect.runPromise(Effect.scoped(program))
