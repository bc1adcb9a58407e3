/**
 * Puts blobs in a loop until it is killed, and prints each that was acknowledged: seed, size and
 * ID. Every tenth is deleted again, which is printed too. Run by blob-files-crash.test.ts.
 */
import { writeSync } from "node:fs"
import { Effect } from "effect"
import { noise, parts, put } from "../contract/blob-store-bytes.ts"
import { openStore } from "./blob-files-folder.ts"

const [dir = "", first = "0"] = process.argv.slice(2)
const writers = 12

const say = (line: unknown) => writeSync(1, `${JSON.stringify(line)}\n`)

const write = (store: Effect.Success<ReturnType<typeof openStore>>, writer: number) =>
  Effect.gen(function* () {
    for (let turn = 0; ; turn++) {
      const seed = Number(first) + turn * writers + writer
      const size = seed % 7 === 0 ? 600_000 + seed : (seed * 37) % 90_000
      const { id } = yield* put(store, parts(noise(seed, size), 100_000))
      say({ kind: "stored", seed, size, id })
      if (seed % 10 !== 0) continue
      say({ kind: "deleting", id })
      yield* store.delete(id, put.origin)
      say({ kind: "deleted", id })
    }
  })

const program = Effect.flatMap(openStore(dir), (store) =>
  Effect.all(
    Array.from({ length: writers }, (_, writer) => write(store, writer)),
    { concurrency: "unbounded" },
  ),
)
await Effect.runPromise(Effect.scoped(program))
