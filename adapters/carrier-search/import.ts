/**
 * Makes a mirror of FMCSA's public files: read once from front to back, in a file beside the one in
 * use, which it replaces when it is whole. Killed anywhere, it leaves the old one as it was.
 *
 * Source: decisions of document 3, carrier registry; market facts B2; decision 0092.
 */
import { closeSync, fsyncSync, mkdirSync, openSync, readdirSync, renameSync, rmSync } from "node:fs"
import { basename, dirname, join } from "node:path"
import Sqlite from "better-sqlite3"
import { batched, bitSet, docketSet, pairList } from "#adapters/carrier-search/batch.ts"
import { csvRows } from "#adapters/carrier-search/csv-rows.ts"
import { dots, key_of, shownOf, tables } from "#adapters/carrier-search/mirror-file.ts"
import {
  type Judge,
  judged,
  type Kind,
  kinds,
  layoutOf,
  malformed_row,
  type Problem,
  problems,
} from "#adapters/carrier-search/row.ts"
import { unnumberedOf } from "#adapters/carrier-search/unnumbered.ts"

/** A file of the registry, or what stands for one. */
export interface CarrierFile {
  readonly name: string
  /** How old what it says is; legacy never younger than its last day. RFC 3339. */
  readonly as_of: string
  /** Its bytes, unpacked; asked for twice, the first time for its header alone. */
  readonly bytes: () => AsyncIterable<Buffer>
}

export interface Rejected {
  readonly problem: string
  readonly rows: number
  /** The line of the first. */
  readonly first: number
}

/** How one file was read. */
export interface FileReport {
  readonly name: string
  readonly kind: Kind
  readonly as_of: string
  readonly rows: number
  /** Rows of active carriers: those that a broker's row drops are still among them. */
  readonly active: number
  /** Rows of legacy whose USDOT number Motus has. */
  readonly superseded: number
  /** Rows with another prefix than MC. */
  readonly other: number
  readonly rejected: ReadonlyArray<Rejected>
}

export interface ImportReport {
  readonly files: ReadonlyArray<FileReport>
  readonly numbers: number
  readonly carriers: number
}

export interface ImportOptions {
  /** Where the mirror is to be. */
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
/** Twenty times of what the registry has: a file of more is none of its. */
const rows_max = 50_000_000
/** Of SQLite's pages while it is filled, in KiB: rows come in nearly any order. */
const cache_kib = 32_768
const page_bytes = 8192

/** The header of each file, whatever its name says. Throws where it is none that is known. */
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
  throw new Error(`${name} is neither FMCSA's legacy file nor that of Motus${missing}`)
}

type Header = Exclude<Awaited<ReturnType<typeof headerOf>>, undefined>

/** Counts of one file while it is read. */
const counting = () => {
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

/** Motus first: carriers whose USDOT number is no broker's under any docket. */
const from_motus = `
  insert into carrier select key, name, cell from motus
  where key % ${dots} not in (select dot from motus_broker) order by key
`
/** Of one docket and one USDOT number in several rows, a broker's drops the others. */
const without_broker = `delete from carrier where key = ${key_of}`

const putInto = (table: string) =>
  `insert into ${table} values (${key_of}, ?, ?)
   on conflict (key) do update set name = excluded.name, cell = excluded.cell`

const created = (path: string) => {
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

/** Writes down how it was made, and answers what it has. */
const record = (
  file: Sqlite.Database,
  { is_demo, imported_at }: ImportOptions,
  reports: ReadonlyArray<FileReport>,
  numbers: number,
) => {
  // A count is a number.
  const carriers = file.prepare("select count(*) from carrier").pluck().get() as number
  const made = file.prepare("insert into import values (?, ?, ?, ?)")
  made.run(imported_at, is_demo ? 1 : 0, numbers, carriers)
  const source = file.prepare("insert into source values (?, ?, ?, ?)")
  for (const { kind, name, as_of, rows } of reports) source.run(kind, name, as_of, rows)
  return { numbers, carriers }
}

const putting = (file: Sqlite.Database, table: string) => {
  const into = file.prepare(putInto(table))
  return batched((mc, dot, name) => void into.run(mc, dot, name, shownOf(name)))
}

/** The new file while it is filled; it sees nothing of the one in use. */
const filling = (path: string) => {
  const file = created(path)
  const [carrier, motus] = [putting(file, "carrier"), putting(file, "motus")]
  const unnumbered = unnumberedOf(file)
  const motus_broker = file.prepare("insert or ignore into motus_broker values (?)")
  const motus_dots = bitSet(dots - 1)
  const [numbers, shown] = [docketSet(), docketSet()]
  const brokers = pairList()
  let different = 0

  const judgeOf = (kind: Kind, { count }: ReturnType<typeof counting>) => {
    const docket = (mc: number) => {
      if (mc === 0) count.other++
      else if (!numbers.has(mc)) {
        numbers.add(mc)
        different++
      }
    }
    const { add } = kind === "legacy" ? carrier : motus
    const active = (mc: number, dot: number, name: string) => {
      count.active++
      shown.add(mc)
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
    const alone: Judge["unnumbered"] = (mc, name, is_broker) => {
      if (!is_broker) count.active++
      unnumbered.add(mc, name, is_broker)
    }
    return {
      docket,
      carrier: active,
      unnumbered: alone,
      ...(kind === "legacy" ? of_legacy : of_motus),
    }
  }
  return {
    judgeOf,
    /** All files of Motus are read. */
    motusEnded: () => {
      motus.flush()
      file.exec(from_motus)
    },
    /** All files are read. Answers what the mirror has. */
    seal: (options: ImportOptions, reports: ReadonlyArray<FileReport>) => {
      carrier.flush()
      const drop = file.prepare(without_broker)
      brokers.each((mc, dot) => {
        if (shown.has(mc)) drop.run(mc, dot)
      })
      unnumbered.place()
      const counts = record(file, options, reports, different)
      file.exec("commit")
      return counts
    },
    close: () => void file.close(),
  }
}

type Filling = ReturnType<typeof filling>

/** Reads one file into the new mirror. Throws what cannot be read, or the signal's reason. */
const readInto = async (
  into: Filling,
  file: CarrierFile,
  header: Header,
  signal: AbortSignal,
): Promise<FileReport> => {
  const counts = counting()
  const { kind } = header
  let line = 0
  let read: ReturnType<typeof judged> | undefined
  const judge: Judge = {
    ...into.judgeOf(kind, counts),
    problem: (problem) => counts.reject(problem, line),
  }
  const reader = csvRows(
    (row) => {
      line = row.line
      if (read === undefined) read = judged(header, row.cells, judge)
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

const part_of = ".importing"

/** One import at a time: the lock dies with its process, whatever killed it. */
const lock = (path: string) => {
  const held = new Sqlite(`${path}.lock`, { timeout: 0 })
  try {
    held.pragma("locking_mode = exclusive")
    held.exec("begin exclusive")
    return held
  } catch (error) {
    held.close()
    const is_busy = error instanceof Sqlite.SqliteError && error.code.startsWith("SQLITE_BUSY")
    throw is_busy ? new Error("another import into this mirror is under way") : error
  }
}

/** What killed imports have left; its name says so. */
const sweep = (path: string) => {
  const left = basename(path) + part_of
  for (const name of readdirSync(dirname(path))) {
    if (name.startsWith(left)) rmSync(join(dirname(path), name), { force: true })
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
 * Imports, and answers what it has read. Rejects with an Error of one line, or the signal's reason;
 * the mirror in use is then as it was. Holds this thread while it reads a piece of a file.
 */
export const importCarriers = async (options: ImportOptions): Promise<ImportReport> => {
  const { path, files, signal, onFile } = options
  const headers: Array<{ readonly file: CarrierFile; readonly header: Header }> = []
  for (const file of files) headers.push({ file, header: await headerOf(file) })
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 })
  using ends = new DisposableStack()
  const held = lock(path)
  ends.defer(() => void held.close())
  sweep(path)
  ends.defer(() => sweep(path))
  const part = path + part_of
  const into = filling(part)
  ends.defer(into.close)
  const reports: Array<FileReport> = []
  // Legacy is judged by what Motus has.
  for (const kind of kinds.toReversed()) {
    for (const { file, header } of headers) {
      if (header.kind !== kind) continue
      const report = await readInto(into, file, header, signal)
      reports.push(report)
      onFile(report)
    }
    if (kind === "motus") into.motusEnded()
  }
  const counts = into.seal(options, reports)
  into.close()
  signal.throwIfAborted()
  sync(part)
  renameSync(part, path)
  sync(dirname(path))
  return { files: reports, ...counts }
}
