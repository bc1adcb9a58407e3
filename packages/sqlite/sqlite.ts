/**
 * Read models in SQLite: one file per service and table version.
 *
 * A service's file may have a configured path, so that other programs can read it. Its version is
 * then SQLite's user_version, and a file at that path that is not a read model is never
 * overwritten. A damaged read model is moved aside and rebuilt.
 *
 * WAL with synchronous=NORMAL: a power failure may lose the last transactions with their
 * checkpoint; the projection repeats them from the log.
 */
import { existsSync, mkdirSync, readdirSync, renameSync, rmSync, statSync } from "node:fs"
import { dirname, join } from "node:path"
import Sqlite from "better-sqlite3"
import { Effect, Layer } from "effect"
import { Kysely, type LogEvent, type SqliteDatabase, SqliteDialect } from "kysely"
import {
  type Checkpoint,
  type Database,
  Databases,
  DatabaseUnusable,
  type Design,
  type Place,
} from "#projections/database.ts"
import { compiler, type Write } from "#projections/statement.ts"
import { limitCache } from "./cache.ts"
import { comparison } from "./comparison.ts"
import { file_suffixes, isDamage, moveAside } from "./damage.ts"
import { type Reader, reader } from "./reader.ts"

const setup = `
  create table if not exists checkpoint (
    id integer primary key check (id = 1), position integer not null, hash text not null
  );
  insert or ignore into checkpoint values (1, 0, '');
`

/**
 * How long a write waits for another program's lock, in milliseconds. The wait blocks this thread;
 * the projection retries.
 */
const busy_ms_max = 100

/** Opens a file. Statements and the checkpoint are cached. */
const open = <Tables>(path: string, design: Design<Tables>) => {
  const sqlite = new Sqlite(path)
  try {
    return fileOf(path, sqlite, design)
  } catch (cause) {
    // Closing it later would delete the -wal file of its successor.
    sqlite.close()
    throw cause
  }
}

const fileOf = <Tables>(
  path: string,
  sqlite: Sqlite.Database,
  { version, create }: Design<Tables>,
) => {
  sqlite.pragma("journal_mode = WAL")
  sqlite.pragma("synchronous = NORMAL")
  limitCache(sqlite)
  const existing = sqlite.prepare("select 1 from sqlite_schema where name = 'checkpoint'").get()
  if (existing === undefined) {
    sqlite.transaction(() => {
      sqlite.exec(setup)
      sqlite.pragma(`user_version = ${version}`)
      for (const statement of create(compiler<Tables>())) sqlite.exec(statement)
    })()
  }
  sqlite.pragma(`busy_timeout = ${busy_ms_max}`)
  const compiled = new Map<string, Sqlite.Statement<Array<unknown>>>()
  const prepare = (sql: string) => {
    const statement = compiled.get(sql) ?? sqlite.prepare<Array<unknown>>(sql)
    compiled.set(sql, statement)
    return statement
  }
  const move = prepare("update checkpoint set position = ?, hash = ?")
  const run = (writes: ReadonlyArray<Write>) => {
    for (const { sql, parameters } of writes) prepare(sql).run(...parameters)
  }
  const write = sqlite.transaction(
    (writes: ReadonlyArray<Write>, { position, hash }: Checkpoint) => {
      run(writes)
      move.run(position, hash)
    },
  ).immediate
  // `setup` inserts this row.
  let checkpoint = prepare("select position, hash from checkpoint").get() as Checkpoint
  return {
    path,
    inode: inodeAt(path),
    sqlite,
    prepare,
    checkpoint: () => checkpoint,
    apply: (writes: ReadonlyArray<Write>, { position, hash }: Checkpoint) => {
      write(writes, { position, hash })
      checkpoint = { position, hash }
    },
    applySlowly: (
      slices: Iterable<ReadonlyArray<Write>>,
      { position, hash }: Checkpoint,
      pause: Effect.Effect<void>,
    ) =>
      Effect.gen(function* () {
        sqlite.exec("begin immediate")
        for (const slice of slices) {
          run(slice)
          yield* pause
        }
        move.run(position, hash)
        sqlite.exec("commit")
        checkpoint = { position, hash }
      }).pipe(
        Effect.ensuring(
          Effect.sync(() => {
            if (sqlite.open && sqlite.inTransaction) sqlite.exec("rollback")
          }),
        ),
      ),
    close: () => void sqlite.close(),
  }
}

type File = ReturnType<typeof open>

/** The inode at a path. Inodes are not reused while our file is open. */
const inodeAt = (path: string) => statSync(path, { throwIfNoEntry: false })?.ino

/** A read model's version; undefined for another database. Throws if it is not SQLite. */
const versionAt = (path: string): number | undefined => {
  const sqlite = new Sqlite(path, { readonly: true, fileMustExist: true })
  try {
    // One column each: of names, and of the version.
    const names = sqlite.prepare("select name from sqlite_schema").pluck().all() as Array<string>
    const version = sqlite.pragma("user_version", { simple: true }) as number
    // A database without tables can be overwritten: its creation was interrupted, or it is empty.
    return names.length === 0 || names.includes("checkpoint") ? version : undefined
  } finally {
    sqlite.close()
  }
}

const isOurs = (path: string) => {
  try {
    return versionAt(path) !== undefined
  } catch {
    return false
  }
}

const placeOf = ({ path, inode }: File): Place => {
  const found = inodeAt(path)
  if (found === inode) return "own"
  return found === undefined || isOurs(path) ? "lost" : "foreign"
}

const removeFile = (path: string) => {
  for (const suffix of file_suffixes) rmSync(path + suffix, { force: true })
}

const dump = (file: File) => {
  const tables = file
    .prepare("select name from sqlite_schema where type = 'table' and name not like 'sqlite_%'")
    .pluck()
    // One column of text.
    .all() as Array<string>
  const rows = (table: string) =>
    file.sqlite
      .prepare(`select * from "${table}"`)
      .all()
      .map((row) => JSON.stringify(row))
      .sort()
  return Object.fromEntries(tables.sort().map((table) => [table, rows(table)]))
}

const unusable = (path: string, cause: unknown) => {
  // SQLite and the file system throw only Errors.
  const { message } = cause as Error
  return new DatabaseUnusable({ detail: `${path} cannot be used as a database: ${message}.` })
}

const attempt = <A>(path: string, run: () => A) =>
  Effect.try({ try: run, catch: (cause) => unusable(path, cause) })

interface Dependencies {
  readonly read: Reader
  /** Moves a damaged file aside and logs it. A file that is being rebuilt is just removed. */
  readonly onDamaged: (path: string, cause: unknown) => void
}

/** A database whose file `replace` may exchange while it is in use. */
const database = <Tables>(
  first: File,
  design: Design<Tables>,
  { read, onDamaged }: Dependencies,
): Database<Tables> & { readonly file: () => File } => {
  let file = first
  const delegate: SqliteDatabase = {
    close: () => file.close(),
    // A better-sqlite3 statement fits Kysely's interface except for the type of `iterate`.
    prepare: (sql) => file.prepare(sql) as unknown as ReturnType<SqliteDatabase["prepare"]>,
  }
  /** Moves a damaged file aside, so that it is rebuilt like a deleted one. */
  const handleDamage = (cause: unknown) => {
    if (isDamage(cause) && inodeAt(file.path) === file.inode) onDamaged(file.path, cause)
  }
  const log = (event: LogEvent) => (event.level === "error" ? handleDamage(event.error) : undefined)
  const catchDamage = Effect.catchDefect((cause) => {
    handleDamage(cause)
    return isDamage(cause) ? Effect.fail(unusable(first.path, cause)) : Effect.die(cause)
  })
  return {
    file: () => file,
    db: new Kysely<Tables>({ dialect: new SqliteDialect({ database: delegate }), log }),
    reader: new Kysely<Tables>({ dialect: read.dialect(() => file), log }),
    checkpoint: () => file.checkpoint(),
    apply: (writes, checkpoint) => catchDamage(Effect.sync(() => file.apply(writes, checkpoint))),
    applySlowly: (slices, checkpoint, pause) =>
      catchDamage(Effect.suspend(() => file.applySlowly(slices, checkpoint, pause))),
    dump: catchDamage(Effect.sync(() => dump(file))),
    place: () => placeOf(file),
    compare: (rebuilt, rows_max) =>
      Effect.suspend(() => {
        // Callers pass only a database of `shadow`.
        const other = (rebuilt as ReturnType<typeof database<Tables>>).file()
        return comparison({ kept: file.path, rebuilt: other.path, rows_max })
      }),
    shadow: Effect.acquireRelease(
      attempt(first.path, () => {
        const path = `${first.path}.building`
        removeFile(path)
        return database<Tables>(open(path, design), design, { read, onDamaged: () => undefined })
      }),
      (rebuilt) =>
        Effect.sync(() => {
          rebuilt.file().close()
          removeFile(`${first.path}.building`)
        }),
    ),
    replace: (rebuilt) =>
      attempt(first.path, () => {
        // Callers pass only a database of `shadow`.
        const other = (rebuilt as ReturnType<typeof database<Tables>>).file()
        if (placeOf(file) === "foreign")
          throw new Error("the file at its path is not a read model and is not overwritten")
        file.close()
        other.close()
        removeFile(file.path)
        renameSync(other.path, file.path)
        file = open(file.path, design)
        return true
      }),
  }
}

type DesignName = Pick<Design<unknown>, "service" | "version">

/** The path in the folder. Removes files of other versions and of interrupted rebuilds. */
const pathIn = (folder: string, { service, version }: DesignName) => {
  const name = `${service}.v${version}.sqlite`
  for (const other of readdirSync(folder)) {
    const foreign = other.startsWith(`${service}.v`) && !other.startsWith(name)
    if (foreign || other.startsWith(`${name}.building`)) removeFile(join(folder, other))
  }
  return join(folder, name)
}

/**
 * Like `versionAt`, but returns `expected` for a damaged file of ours: opening it handles the
 * damage.
 */
const versionOrExpected = (path: string, expected: number, is_ours: boolean) => {
  try {
    return versionAt(path)
  } catch (cause) {
    if (is_ours && isDamage(cause)) return expected
    throw cause
  }
}

/**
 * Removes a read model of another version. Throws if the file is not a read model or the folder
 * does not exist. A damaged file counts as a read model only if `is_ours`.
 */
const clearPath = (path: string, { version }: DesignName, is_ours: boolean) => {
  if (!existsSync(dirname(path))) throw new Error("its folder does not exist")
  const found = existsSync(path) ? versionOrExpected(path, version, is_ours) : -1
  if (found === undefined) throw new Error("it contains other tables and is not overwritten")
  // Leftover -wal files of a deleted database would be read as part of the new one.
  if (found !== version) removeFile(path)
  removeFile(`${path}.building`)
  return path
}

const openOrReplace = <Tables>(
  path: string,
  design: Design<Tables>,
  { onDamaged }: Dependencies,
) => {
  try {
    return open(path, design)
  } catch (cause) {
    if (!isDamage(cause)) throw cause
    onDamaged(path, cause)
    return open(path, design)
  }
}

/**
 * Databases in files in `folder`, which is created. `own` has the configured paths of services,
 * whose folders must exist. A file at `unnamed`, the default path, always counts as ours.
 */
export const sqlite = (
  folder: string,
  own: ReadonlyMap<string, string> = new Map(),
  unnamed?: string,
) =>
  Layer.effect(
    Databases,
    Effect.gen(function* () {
      const run = Effect.runForkWith(yield* Effect.context<never>())
      const onDamaged = (path: string, cause: unknown) => {
        const { message } = unusable(path, cause)
        const consequence = `It was moved to ${moveAside(path)} and will be rebuilt from the log.`
        run(Effect.logWarning(`${message} ${consequence}`))
      }
      const dependencies: Dependencies = { read: yield* reader, onDamaged }
      mkdirSync(folder, { recursive: true, mode: 0o700 })
      return Databases.of({
        open: <Tables>(design: Design<Tables>) => {
          const path = own.get(design.service)
          const is_ours = path === unnamed
          return Effect.acquireRelease(
            attempt(path ?? folder, () => {
              const file_path =
                path === undefined ? pathIn(folder, design) : clearPath(path, design, is_ours)
              return database<Tables>(
                openOrReplace(file_path, design, dependencies),
                design,
                dependencies,
              )
            }),
            (opened) => Effect.sync(() => opened.file().close()),
          )
        },
      })
    }),
  )
