/**
 * Witnesses of the log in addition to the high-water mark: read models in files, and the blob
 * store. They are opened read-only.
 */
import { existsSync, readdirSync, readFileSync } from "node:fs"
import { basename, join } from "node:path"
import Sqlite from "better-sqlite3"
import { Effect, Option, Schema, Stream } from "effect"
import { Log } from "#events/log.ts"
import type { Watch } from "./watch.ts"

/** The last commit that a witness has recorded. */
export interface Checkpointed {
  readonly name: string
  readonly position: number
  readonly hash: string
}

const read = (path: string): ReadonlyArray<Checkpointed> => {
  const sqlite = new Sqlite(path, { readonly: true, fileMustExist: true })
  try {
    const exists = sqlite.prepare("select 1 from sqlite_schema where name = 'checkpoint'").get()
    if (exists === undefined) return []
    // The read models create the table with these columns and one row.
    const row = sqlite.prepare("select position, hash from checkpoint").get() as
      | Pick<Checkpointed, "position" | "hash">
      | undefined
    if (row === undefined || row.position === 0) return []
    return [{ name: `the read model ${basename(path)}`, ...row }]
  } finally {
    sqlite.close()
  }
}

/** The checkpoints of all read models in a data folder, without unreadable ones. */
const readCheckpoints = (data_dir: string): ReadonlyArray<Checkpointed> => {
  const folder = join(data_dir, "read-models")
  const inside = existsSync(folder) ? readdirSync(folder).map((name) => join(folder, name)) : []
  const files = [...inside, join(data_dir, "capital-pressure.sqlite")]
  return files
    .filter((path) => path.endsWith(".sqlite") && existsSync(path))
    .flatMap((path) => {
      try {
        return read(path)
      } catch {
        // Damaged or incomplete: not a witness.
        return []
      }
    })
}

/** File name of the blob store's witness, in the folder of the blobs. */
export const volume_witness_file = "log-witness.json"

const decode = Schema.decodeUnknownOption(
  Schema.fromJsonString(Schema.Struct({ position: Schema.Int, hash: Schema.String })),
)

/** Reads the blob store's witness; empty before the first commit of its journal. */
export const readVolumeWitness = (dir: string): ReadonlyArray<Checkpointed> => {
  try {
    const known = decode(readFileSync(join(dir, volume_witness_file), "utf8"))
    return Option.toArray(known).map((one) => ({ name: "the blob store", ...one }))
  } catch {
    // Missing or unreadable: not a witness.
    return []
  }
}

/** All witnesses of the log in these folders. */
export const readWitnesses = (data_dir: string, blob_dir: string) =>
  Effect.sync(() => [...readCheckpoints(data_dir), ...readVolumeWitness(blob_dir)])

/**
 * Compares the log with each witness; an unexplained difference closes the log. Returns whether any
 * witness differs, explained or not.
 */
export const compareWith = Effect.fnUntraced(function* (
  watch: Watch,
  witnesses: ReadonlyArray<Checkpointed>,
) {
  const log = yield* Log
  const head = yield* log.end
  let differs = false
  for (const { name, position, hash } of witnesses) {
    const [found] =
      position > head ? [] : yield* Stream.runCollect(Stream.take(log.entries("", position - 1), 1))
    if (found?.position === position && found.hash === hash) continue
    differs = true
    yield* watch.isExplained({ name, position }, head)
  }
  return { differs }
})
