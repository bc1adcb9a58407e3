/**
 * Read models in SQLite: one file per service and version of its tables.
 *
 * A service's file may have a path of its own, by which others read it too: then its version is in
 * it, as SQLite's user_version, and what is at that path and no read model is never written over.
 * A read model's file that SQLite calls damaged is set aside, and built again.
 *
 * WAL with synchronous=NORMAL: a power cut may take the last transactions back, checkpoint and
 * all, and the log fills them in again.
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
import { comparison } from "./comparison.ts"
import { isDamage, parts, setAside } from "./damage.ts"
import { type Reader, reader } from "./reader.ts"

const setup = `
  create table if not exists checkpoint (
    id integer primary key check (id = 1), position integer not null, hash text not null
  );
  insert or ignore into checkpoint values (1, 0, '');
`

/**
 * How long a write waits for another program that writes, in milliseconds: nothing else happens
 * in this thread meanwhile. Whoever projects tries again.
 */
const busy_ms_max = 100

/** An open file, with its statements kept compiled and its checkpoint kept at hand. */
const open = <Tables>(path: string, design: Design<Tables>) => {
  const sqlite = new Sqlite(path)
  try {
    return fileOf(path, sqlite, design)
  } catch (cause) {
    // One that is closed later would take what SQLite keeps beside its successor with it.
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
  const made = sqlite.prepare("select 1 from sqlite_schema where name = 'checkpoint'").get()
  if (made === undefined) {
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
  // The table has this one row, by `setup`.
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

/** No other file has it while ours is open. Undefined where there is none. */
const inodeAt = (path: string) => statSync(path, { throwIfNoEntry: false })?.ino

/** What a read model's file says of itself; undefined of any other. Throws of what is no SQLite. */
const versionAt = (path: string): number | undefined => {
  const sqlite = new Sqlite(path, { readonly: true, fileMustExist: true })
  try {
    // One column each: of names, and of the version.
    const names = sqlite.prepare("select name from sqlite_schema").pluck().all() as Array<string>
    const version = sqlite.pragma("user_version", { simple: true }) as number
    // Whoever made it was stopped before its first table, or it is an empty file: nothing is lost.
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
  for (const part of parts) rmSync(path + part, { force: true })
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
  // What SQLite and the file system throw are errors.
  const { message } = cause as Error
  return new DatabaseUnusable({ detail: `${path} cannot be used as a database: ${message}.` })
}

const attempt = <A>(path: string, run: () => A) =>
  Effect.try({ try: run, catch: (cause) => unusable(path, cause) })

interface Around {
  readonly read: Reader
  /** Moves a damaged file away and says so. What is built beside is simply removed. */
  readonly away: (path: string, cause: unknown) => void
}

/** A database over a file that `replace` may exchange under its users. */
const database = <Tables>(
  first: File,
  design: Design<Tables>,
  { read, away }: Around,
): Database<Tables> & { readonly file: () => File } => {
  let file = first
  const delegate: SqliteDatabase = {
    close: () => file.close(),
    // A statement of better-sqlite3 is what Kysely asks for, but for `iterate`'s narrower type.
    prepare: (sql) => file.prepare(sql) as unknown as ReturnType<SqliteDatabase["prepare"]>,
  }
  /** Nobody finds a damaged file any more: then it is built again, as one that was deleted. */
  const noted = (cause: unknown) => {
    if (isDamage(cause) && inodeAt(file.path) === file.inode) away(file.path, cause)
  }
  const log = (event: LogEvent) => (event.level === "error" ? noted(event.error) : undefined)
  const noting = Effect.catchDefect((cause) => {
    noted(cause)
    return isDamage(cause) ? Effect.fail(unusable(first.path, cause)) : Effect.die(cause)
  })
  return {
    file: () => file,
    db: new Kysely<Tables>({ dialect: new SqliteDialect({ database: delegate }), log }),
    reader: new Kysely<Tables>({ dialect: read.dialect(() => file), log }),
    checkpoint: () => file.checkpoint(),
    apply: (writes, checkpoint) => noting(Effect.sync(() => file.apply(writes, checkpoint))),
    applySlowly: (slices, checkpoint, pause) =>
      noting(Effect.suspend(() => file.applySlowly(slices, checkpoint, pause))),
    dump: noting(Effect.sync(() => dump(file))),
    place: () => placeOf(file),
    compare: (beside, rows_max) =>
      Effect.suspend(() => {
        // Only what `beside` answered comes here: it is of this adapter.
        const other = (beside as ReturnType<typeof database<Tables>>).file()
        return comparison({ kept: file.path, rebuilt: other.path, rows_max })
      }),
    beside: Effect.acquireRelease(
      attempt(first.path, () => {
        const path = `${first.path}.building`
        removeFile(path)
        return database<Tables>(open(path, design), design, { read, away: () => undefined })
      }),
      (beside) =>
        Effect.sync(() => {
          beside.file().close()
          removeFile(`${first.path}.building`)
        }),
    ),
    replace: (beside) =>
      attempt(first.path, () => {
        // Only what `beside` answered comes here: it is of this adapter.
        const other = (beside as ReturnType<typeof database<Tables>>).file()
        if (placeOf(file) === "foreign") throw new Error("what is there is left as it is")
        file.close()
        other.close()
        removeFile(file.path)
        renameSync(other.path, file.path)
        file = open(file.path, design)
        return true
      }),
  }
}

type Named = Pick<Design<unknown>, "service" | "version">

/** Removes what other versions left in the folder, and what a rebuild did not finish. */
const pathIn = (folder: string, { service, version }: Named) => {
  const name = `${service}.v${version}.sqlite`
  for (const other of readdirSync(folder)) {
    const foreign = other.startsWith(`${service}.v`) && !other.startsWith(name)
    if (foreign || other.startsWith(`${name}.building`)) removeFile(join(folder, other))
  }
  return join(folder, name)
}

/** As `versionAt`; of what is ours, `expected` where it is damaged: whoever opens it sees that. */
const readable = (path: string, expected: number, is_ours: boolean) => {
  try {
    return versionAt(path)
  } catch (cause) {
    if (is_ours && isDamage(cause)) return expected
    throw cause
  }
}

/**
 * Removes a read model of another version; throws where there is something else, or no folder.
 * Whether something damaged was a read model cannot be told, but by where it is: `is_ours`.
 */
const clearedPath = (path: string, { version }: Named, is_ours: boolean) => {
  if (!existsSync(dirname(path))) throw new Error("its folder is not there")
  const found = existsSync(path) ? readable(path, version, is_ours) : -1
  if (found === undefined) throw new Error("it holds other tables, which are left as they are")
  // What is left of a file that is gone would be read as part of the new one.
  if (found !== version) removeFile(path)
  removeFile(`${path}.building`)
  return path
}

const openAnew = <Tables>(path: string, design: Design<Tables>, { away }: Around) => {
  try {
    return open(path, design)
  } catch (cause) {
    if (!isDamage(cause)) throw cause
    away(path, cause)
    return open(path, design)
  }
}

/**
 * Databases in files below `folder`, which is made when it is not there; `own` are the paths of
 * those services that have one of their own, whose folder must be there. What is at `unnamed` is
 * ours, whatever it is: nobody chose that path.
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
      const away = (path: string, cause: unknown) => {
        const { message } = unusable(path, cause)
        const told = `It is kept as ${setAside(path)}, and built again from the log.`
        run(Effect.logWarning(`${message} ${told}`))
      }
      const around: Around = { read: yield* reader, away }
      mkdirSync(folder, { recursive: true, mode: 0o700 })
      return Databases.of({
        open: <Tables>(design: Design<Tables>) => {
          const path = own.get(design.service)
          const is_ours = path === unnamed
          return Effect.acquireRelease(
            attempt(path ?? folder, () => {
              const cleared =
                path === undefined ? pathIn(folder, design) : clearedPath(path, design, is_ours)
              return database<Tables>(openAnew(cleared, design, around), design, around)
            }),
            (opened) => Effect.sync(() => opened.file().close()),
          )
        },
      })
    }),
  )
