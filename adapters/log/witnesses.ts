/**
 * Who knows what the log held, beside the high-water mark: read models in files. They are opened
 * to be read only, as they are.
 */
import { existsSync, readdirSync } from "node:fs"
import { basename, join } from "node:path"
import Sqlite from "better-sqlite3"
import { Effect, Stream } from "effect"
import type { Watch } from "#adapters/log/log-watch.ts"
import { Log } from "#events/log.ts"

/** The last commit that a read model shows. */
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
export const readCheckpoints = (data_dir: string) =>
  Effect.sync(() => {
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
  })

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
