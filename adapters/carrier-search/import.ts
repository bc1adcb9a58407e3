/**
 * Imports FMCSA's public files into a mirror. Writes a temporary file that replaces the mirror once
 * it is complete, so a killed import leaves the old mirror unchanged.
 *
 * Source: decisions of document 3, carrier registry; market facts B2; decision 0092.
 */
import { closeSync, fsyncSync, mkdirSync, openSync, readdirSync, renameSync, rmSync } from "node:fs"
import { basename, dirname, join } from "node:path"
import Sqlite from "better-sqlite3"
import { batched, bitSet, docketSet, pairList } from "#adapters/carrier-search/batch.ts"
import { csvRows } from "#adapters/carrier-search/csv-rows.ts"
import { csvCell, dot_limit, key_sql, tables } from "#adapters/carrier-search/mirror-file.ts"
import {
  type Kind,
  kinds,
  layoutOf,
  malformed_row,
  type Problem,
  problems,
  type RowHandler,
  rowReader,
} from "#adapters/carrier-search/row.ts"
import { unnumberedOf } from "#adapters/carrier-search/unnumbered.ts"

/** A file of the registry, or a generated one. */
export interface CarrierFile {
  readonly name: string
  /** The date of its content in RFC 3339; for legacy at most its last day. */
  readonly as_of: string
  /** The uncompressed bytes. Called twice, first for the header. */
  readonly bytes: () => AsyncIterable<Buffer>
}

export interface RejectedRows {
  readonly problem: string
  readonly rows: number
  /** The line number of the first one. */
  readonly first: number
}

/** The result of reading one file. */
export interface FileReport {
  readonly name: string
  readonly kind: Kind
  readonly as_of: string
  readonly rows: number
  /** Rows of active carriers, including those that a broker's row excludes. */
  readonly active: number
  /** Legacy rows that Motus supersedes. */
  readonly superseded: number
  /** Rows with a prefix other than MC. */
  readonly other: number
  readonly rejected: ReadonlyArray<RejectedRows>
}

export interface ImportReport {
  readonly files: ReadonlyArray<FileReport>
  readonly numbers: number
  readonly carriers: number
}

export interface ImportOptions {
  /** The path of the mirror. */
  readonly path: string
  readonly files: ReadonlyArray<CarrierFile>
  readonly is_demo: boolean
  /** RFC 3339. */
  readonly imported_at: string
  readonly onFile: (report: FileReport) => void
  readonly signal: AbortSignal
}

/** The day on which the legacy file was frozen. Source: market facts B2. */
const legacy_as_of = "2026-05-14T00:00:00.000Z"
/** Twenty times the registry's size. */
const rows_max = 50_000_000
/** SQLite's page cache during the import, in KiB; rows are in almost random order. */
const cache_kib = 32_768
const page_bytes = 8192

/** Detects the kind of a file by its header. Throws if it is unknown. */
const headerOf = async ({ name, bytes }: CarrierFile) => {
  let layout: ReturnType<typeof layoutOf> | undefined
  const reader = csvRows(
    (row) => {
      layout ??= layoutOf(row)
    },
    () => {
      layout ??= { missing: "" }
    },
  )
  for await (const chunk of bytes()) {
    reader.push(chunk)
    if (layout !== undefined) break
  }
  reader.end()
  if (layout === undefined) throw new Error(`${name} is empty`)
  if ("kind" in layout) return layout
  const missing = layout.missing === "" ? "" : `; the nearest is ${layout.missing} are missing`
  throw new Error(`${name} is neither FMCSA's legacy file nor a Motus file${missing}`)
}

type Header = Exclude<Awaited<ReturnType<typeof headerOf>>, undefined>

/** The counters of one file. */
const fileCounters = () => {
  const first = new Map<Problem, number>()
  const rows = new Map<Problem, number>()
  return {
    count: { rows: 0, active: 0, superseded: 0, other: 0 },
    reject: (problem: Problem, line: number) => {
      if (!first.has(problem)) first.set(problem, line)
      rows.set(problem, (rows.get(problem) ?? 0) + 1)
    },
    rejected: () =>
      [...rows].map(([problem, rows]) => ({
        problem: problems[problem],
        rows,
        first: first.get(problem) ?? 0,
      })),
  }
}

const staging = `
  create temp table motus (key integer primary key, name text not null, cell text) strict;
  create temp table motus_broker (dot integer primary key) strict;
`

/** Motus's carriers, except those whose USDOT number belongs to a broker under any docket. */
const insert_from_motus = `
  insert into carrier select key, name, cell from motus
  where key % ${dot_limit} not in (select dot from motus_broker) order by key
`
/** A broker's row excludes carriers with the same docket and USDOT number. */
const delete_broker = `delete from carrier where key = ${key_sql}`

const insertCarrier = (table: string) =>
  `insert into ${table} values (${key_sql}, ?, ?)
   on conflict (key) do update set name = excluded.name, cell = excluded.cell`

const createFile = (path: string) => {
  const file = new Sqlite(path)
  file.pragma("journal_mode = off")
  file.pragma("synchronous = off")
  file.pragma("locking_mode = exclusive")
  file.pragma(`page_size = ${page_bytes}`)
  file.pragma(`cache_size = -${cache_kib}`)
  file.exec(tables)
  file.exec(staging)
  file.exec("begin")
  return file
}

/** Records the sources and returns the counts. */
const record = (
  file: Sqlite.Database,
  { is_demo, imported_at }: ImportOptions,
  reports: ReadonlyArray<FileReport>,
  numbers: number,
) => {
  // count(*) returns a number.
  const carriers = file.prepare("select count(*) from carrier").pluck().get() as number
  const import_row = file.prepare("insert into import values (?, ?, ?, ?)")
  import_row.run(imported_at, is_demo ? 1 : 0, numbers, carriers)
  const source = file.prepare("insert into source values (?, ?, ?, ?)")
  for (const { kind, name, as_of, rows } of reports) source.run(kind, name, as_of, rows)
  return { numbers, carriers }
}

const carrierInserter = (file: Sqlite.Database, table: string) => {
  const insert = file.prepare(insertCarrier(table))
  return batched((mc, dot, name) => void insert.run(mc, dot, name, csvCell(name)))
}

/** Builds the new mirror. */
const mirrorBuilder = (path: string) => {
  const file = createFile(path)
  const [carrier, motus] = [carrierInserter(file, "carrier"), carrierInserter(file, "motus")]
  const unnumbered = unnumberedOf(file)
  const motus_broker = file.prepare("insert or ignore into motus_broker values (?)")
  const motus_dots = bitSet(dot_limit - 1)
  const [numbers, active_dockets] = [docketSet(), docketSet()]
  const brokers = pairList()
  let distinct_numbers = 0

  const handlerOf = (kind: Kind, { count }: ReturnType<typeof fileCounters>) => {
    const docket = (mc: number) => {
      if (mc === 0) count.other++
      else if (!numbers.has(mc)) {
        numbers.add(mc)
        distinct_numbers++
      }
    }
    const { add } = kind === "legacy" ? carrier : motus
    const active = (mc: number, dot: number, name: string) => {
      count.active++
      active_dockets.add(mc)
      add(mc, dot, name)
    }
    const of_legacy = {
      broker: brokers.add,
      dot: (dot: number) => {
        const is_superseded = motus_dots.has(dot)
        if (is_superseded) count.superseded++
        return is_superseded
      },
    }
    const of_motus = {
      broker: (_mc: number, dot: number) => void motus_broker.run(dot),
      dot: (dot: number) => {
        motus_dots.add(dot)
        return false
      },
    }
    const addUnnumbered: RowHandler["unnumbered"] = (mc, name, is_broker) => {
      if (!is_broker) count.active++
      unnumbered.add(mc, name, is_broker)
    }
    return {
      docket,
      carrier: active,
      unnumbered: addUnnumbered,
      ...(kind === "legacy" ? of_legacy : of_motus),
    }
  }
  return {
    handlerOf,
    /** Inserts the Motus carriers. Call this after the last Motus file. */
    finishMotus: () => {
      motus.flush()
      file.exec(insert_from_motus)
    },
    /** Finishes the mirror and returns the counts. Call this after the last file. */
    finish: (options: ImportOptions, reports: ReadonlyArray<FileReport>) => {
      carrier.flush()
      const delete_carrier = file.prepare(delete_broker)
      brokers.each((mc, dot) => {
        if (active_dockets.has(mc)) delete_carrier.run(mc, dot)
      })
      unnumbered.insertAll()
      const counts = record(file, options, reports, distinct_numbers)
      file.exec("commit")
      return counts
    },
    close: () => void file.close(),
  }
}

type MirrorBuilder = ReturnType<typeof mirrorBuilder>

/** Reads one file into the new mirror. Throws a read error or the signal's reason. */
const readInto = async (
  builder: MirrorBuilder,
  file: CarrierFile,
  header: Header,
  signal: AbortSignal,
): Promise<FileReport> => {
  const counts = fileCounters()
  const { kind } = header
  let line = 0
  let read: ReturnType<typeof rowReader> | undefined
  const handler: RowHandler = {
    ...builder.handlerOf(kind, counts),
    problem: (problem) => counts.reject(problem, line),
  }
  const reader = csvRows(
    (row) => {
      line = row.line
      if (read === undefined) read = rowReader(header, row.cells, handler)
      else if (++counts.count.rows <= rows_max) read(row)
    },
    (malformed_line) => {
      counts.count.rows++
      counts.reject(malformed_row, malformed_line)
    },
  )
  for await (const chunk of file.bytes()) {
    signal.throwIfAborted()
    reader.push(chunk)
    if (counts.count.rows > rows_max) throw new Error(`${file.name} has over ${rows_max} rows`)
  }
  reader.end()
  if (counts.count.rows === 0) throw new Error(`${file.name} has a header and no rows`)
  const as_of = kind === "legacy" && file.as_of > legacy_as_of ? legacy_as_of : file.as_of
  return { name: file.name, kind, as_of, ...counts.count, rejected: counts.rejected() }
}

const temporary_suffix = ".importing"

/** Locks out other imports. The lock ends with the process. */
const lock = (path: string) => {
  const lock_file = new Sqlite(`${path}.lock`, { timeout: 0 })
  try {
    lock_file.pragma("locking_mode = exclusive")
    lock_file.exec("begin exclusive")
    return lock_file
  } catch (error) {
    lock_file.close()
    const is_busy = error instanceof Sqlite.SqliteError && error.code.startsWith("SQLITE_BUSY")
    throw is_busy
      ? new Error("another import into this mirror is running; retry when it has finished")
      : error
  }
}

/** Removes files that killed imports left behind. */
const sweep = (path: string) => {
  const prefix = basename(path) + temporary_suffix
  for (const name of readdirSync(dirname(path))) {
    if (name.startsWith(prefix)) rmSync(join(dirname(path), name), { force: true })
  }
}

const sync = (path: string) => {
  const descriptor = openSync(path, "r")
  try {
    fsyncSync(descriptor)
  } finally {
    closeSync(descriptor)
  }
}

/**
 * Imports files and returns a report. Rejects with an Error of one line or the signal's reason, and
 * then leaves the mirror unchanged. Blocks the thread for each chunk of a file.
 */
export const importCarriers = async (options: ImportOptions): Promise<ImportReport> => {
  const { path, files, signal, onFile } = options
  const headers: Array<{ readonly file: CarrierFile; readonly header: Header }> = []
  for (const file of files) headers.push({ file, header: await headerOf(file) })
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 })
  using cleanup = new DisposableStack()
  const lock_file = lock(path)
  cleanup.defer(() => void lock_file.close())
  sweep(path)
  cleanup.defer(() => sweep(path))
  const temporary = path + temporary_suffix
  const builder = mirrorBuilder(temporary)
  cleanup.defer(builder.close)
  const reports: Array<FileReport> = []
  // Motus first, because it supersedes rows of legacy.
  for (const kind of kinds.toReversed()) {
    for (const { file, header } of headers) {
      if (header.kind !== kind) continue
      const report = await readInto(builder, file, header, signal)
      reports.push(report)
      onFile(report)
    }
    if (kind === "motus") builder.finishMotus()
  }
  const counts = builder.finish(options, reports)
  builder.close()
  signal.throwIfAborted()
  sync(temporary)
  renameSync(temporary, path)
  sync(dirname(path))
  return { files: reports, ...counts }
}
