/**
 * Fills a volume with many concurrent writers until it is killed, and logs each response to a file,
 * which outlives the process. Run by volume-kill.test.ts: `FOLDER LOG FIRST`.
 */
import { openSync, writeSync } from "node:fs"
import { noise } from "../../../test/contract/blob-storage/engine-bytes.ts"
import { idOf, openFolder, order, origin, sizeOf } from "./kill-folder.ts"

const [dir = "", log_path = "", first = "0"] = process.argv.slice(2)
const writers = 256
const piece_bytes = 100_000
const large_bytes = 256 * 1024

const file = openSync(log_path, "a")
const record = (line: string) => writeSync(file, `${line}\n`)

const engine = await openFolder(dir)
let at = BigInt(Date.now()) * 1_000_000n

const put = async (seed: number) => {
  const bytes = noise(seed, sizeOf(seed))
  if (bytes.length < large_bytes) return engine.put(order, [bytes], at++)
  const upload = engine.upload(order, seed % 2 === 0 ? bytes.length : undefined)
  for (let from = 0; from < bytes.length; from += piece_bytes) {
    await upload.write(bytes.subarray(from, from + piece_bytes))
  }
  return upload.finish(at++)
}

const write = async (writer: number) => {
  for (let seed = Number(first) + writer; ; seed += writers) {
    const { id } = await put(seed)
    if (id !== idOf(seed)) throw new Error(`seed ${seed} was stored as ${id}`)
    record(`stored ${seed}`)
    if (seed % 10 !== 0) continue
    record(`deleting ${seed}`)
    await engine.delete(id, origin, at++)
    record(`deleted ${seed}`)
  }
}

await Promise.all(Array.from({ length: writers }, (_, writer) => write(writer)))
