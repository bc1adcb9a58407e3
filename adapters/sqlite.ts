/**
 * Read models in SQLite: one file per service and version of its tables.
 *
 * WAL with synchronous=NORMAL: a power cut may take the last transactions back, checkpoint and
 * all, and the log fills them in again.
 */
import { mkdirSync, readdirSync, renameSync, rmSync } from "node:fs"
import { join } from "node:path"
import Sqlite from "better-sqlite3"
import { Effect, Layer } from "effect"
import { Kysely, type SqliteDatabase, SqliteDialect } from "kysely"
import { type Reader, reader } from "#adapters/sqlite-reader.ts"
import { type Checkpoint, type Database, Databases, type Design } from "#projections/database.ts"
import type { Write } from "#projections/statement.ts"

const setup = `
  create table if not exists checkpoint (
    id integer primary key check (id = 1), position integer not null, hash text not null
  );
  insert or ignore into checkpoint values (1, 0, '');
`

/** An open file, with its statements kept compiled and its checkpoint kept at hand. */
const open = (path: string, create: ReadonlyArray<string>) => {
  const sqlite = new Sqlite(path)
  sqlite.pragma("journal_mode = WAL")
  sqlite.pragma("synchronous = NORMAL")
  const made = sqlite.prepare("select 1 from sqlite_schema where name = 'checkpoint'").get()
  if (made === undefined) {
    sqlite.transaction(() => {
      sqlite.exec(setup)
      for (const statement of create) sqlite.exec(statement)
    })()
  }
  const compiled = new Map<string, Sqlite.Statement<Array<unknown>>>()
  const prepare = (sql: string) => {
    const statement = compiled.get(sql) ?? sqlite.prepare<Array<unknown>>(sql)
    compiled.set(sql, statement)
    return statement
  }
  const move = prepare("update checkpoint set position = ?, hash = ?")
  const write = sqlite.transaction(
    (writes: ReadonlyArray<Write>, { position, hash }: Checkpoint) => {
      for (const { sql, parameters } of writes) prepare(sql).run(...parameters)
      move.run(position, hash)
    },
  ).immediate
  // The table has this one row, by `setup`.
  let checkpoint = prepare("select position, hash from checkpoint").get() as Checkpoint
  return {
    path,
    sqlite,
    prepare,
    checkpoint: () => checkpoint,
    apply: (writes: ReadonlyArray<Write>, { position, hash }: Checkpoint) => {
      write(writes, { position, hash })
      checkpoint = { position, hash }
    },
    close: () => void sqlite.close(),
  }
}

type File = ReturnType<typeof open>

const removeFile = (path: string) => {
  for (const suffix of ["", "-wal", "-shm"]) rmSync(path + suffix, { force: true })
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

/** A database over a file that `replace` may exchange under its users. */
const database = <Tables>(
  first: File,
  create: ReadonlyArray<string>,
  read: Reader,
): Database<Tables> & { readonly file: () => File } => {
  let file = first
  const delegate: SqliteDatabase = {
    close: () => file.close(),
    // A statement of better-sqlite3 is what Kysely asks for, but for `iterate`'s narrower type.
    prepare: (sql) => file.prepare(sql) as unknown as ReturnType<SqliteDatabase["prepare"]>,
  }
  return {
    file: () => file,
    db: new Kysely<Tables>({ dialect: new SqliteDialect({ database: delegate }) }),
    reader: new Kysely<Tables>({ dialect: read.dialect(() => file.path) }),
    checkpoint: () => file.checkpoint(),
    apply: (writes, checkpoint) => file.apply(writes, checkpoint),
    dump: () => dump(file),
    beside: Effect.acquireRelease(
      Effect.sync(() => {
        const path = `${file.path}.building`
        removeFile(path)
        return database<Tables>(open(path, create), create, read)
      }),
      (beside) =>
        Effect.sync(() => {
          beside.file().close()
          removeFile(`${first.path}.building`)
        }),
    ),
    replace: (beside) =>
      Effect.gen(function* () {
        // Only what `beside` answered comes here: it is of this adapter.
        const other = (beside as ReturnType<typeof database<Tables>>).file()
        yield* read.forget(file.path)
        const { path } = file
        file.close()
        other.close()
        removeFile(path)
        renameSync(other.path, path)
        file = open(path, create)
      }),
  }
}

/** Databases in files below `folder`, which is made when it is not there. */
export const sqlite = (folder: string) =>
  Layer.effect(
    Databases,
    Effect.gen(function* () {
      const read = yield* reader
      mkdirSync(folder, { recursive: true, mode: 0o700 })
      return Databases.of({
        open: <Tables>({ service, version, create }: Design) =>
          Effect.acquireRelease(
            Effect.sync(() => {
              const name = `${service}.v${version}.sqlite`
              for (const other of readdirSync(folder)) {
                const foreign = other.startsWith(`${service}.v`) && !other.startsWith(name)
                if (foreign || other.startsWith(`${name}.building`)) removeFile(join(folder, other))
              }
              return database<Tables>(open(join(folder, name), create), create, read)
            }),
            (opened) => Effect.sync(() => opened.file().close()),
          ),
      })
    }),
  )
