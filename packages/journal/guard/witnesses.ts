/**
 * What else knows what the log held, beside the high-water mark: read models in files, and blobs.
 * They are opened to be read only, as they are.
 */
import { existsSync, readdirSync, readFileSync } from "node:fs"
import { basename, join } from "node:path"
import Sqlite from "better-sqlite3"
import { Effect, Option, Schema, Stream } from "effect"
import { Log } from "#events/log.ts"
import type { Watch } from "./watch.ts"

/** The last commit that a witness knows. */
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
    // The table's only row has these columns, as the read models make it.
    const row = sqlite.prepare("select position, hash from checkpoint").get() as
      | Pick<Checkpointed, "position" | "hash">
      | undefined
    if (row === undefined || row.position === 0) return []
    return [{ name: `the read model ${basename(path)}`, ...row }]
  } finally {
    sqlite.close()
  }
}

/** The checkpoints of all read models in a data folder; one that cannot be read is left out. */
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
        // Damaged, or in the middle of being made: it is no witness.
        return []
      }
    })
}

/** Name of the blob store's witness, in the folder of the blobs. */
export const volume_witness_file = "log-witness.json"

const decode = Schema.decodeUnknownOption(
  Schema.fromJsonString(Schema.Struct({ position: Schema.Int, hash: Schema.String })),
)

/** What a blob store knows of the log: nothing before the first commit of its journal. */
export const readVolumeWitness = (dir: string): ReadonlyArray<Checkpointed> => {
  try {
    const known = decode(readFileSync(join(dir, volume_witness_file), "utf8"))
    return Option.toArray(known).map((one) => ({ name: "the blob store", ...one }))
  } catch {
    // There is none, or it cannot be read: it is no witness.
    return []
  }
}

/** All witnesses of the log in these folders. */
export const readWitnesses = (data_dir: string, blob_dir: string) =>
  Effect.sync(() => [...readCheckpoints(data_dir), ...readVolumeWitness(blob_dir)])

/**
 * Compares the log with each witness; what is not explained closes the log. Answers whether any
 * knows another log, explained or not.
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
    yield* watch.explains({ name, position }, head)
  }
  return { differs }
})
