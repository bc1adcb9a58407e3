/** Imports registry files given as text into a mirror, and reads its contents. */
import Sqlite from "better-sqlite3"
import { type ImportReport, importCarriers } from "#adapters/carrier-search/import.ts"
import { dot_limit } from "#adapters/carrier-search/mirror-file.ts"
import type { Docket } from "../contract/registry.ts"

/** Files by name, as text or bytes. */
export type Given = Readonly<Record<string, string | Buffer>>

/** Bytes per read: rows start and end anywhere in a read. */
const chunk_bytes = 61

async function* pieces(bytes: Buffer) {
  for (let at = 0; at < bytes.length; at += chunk_bytes) {
    yield bytes.subarray(at, at + chunk_bytes)
  }
}

export interface Importing {
  readonly is_demo?: boolean
  readonly imported_at?: string
  readonly as_of?: string
  readonly signal?: AbortSignal
  readonly onFile?: () => void
}

/** Imports these files, in the given order, into the mirror at `path`. */
export const importTexts = (
  path: string,
  given: Given,
  { is_demo = false, imported_at, as_of, signal, onFile }: Importing = {},
): Promise<ImportReport> =>
  importCarriers({
    path,
    is_demo,
    onFile: onFile ?? (() => undefined),
    signal: signal ?? new AbortController().signal,
    imported_at: imported_at ?? "2026-11-22T00:00:00.000Z",
    files: Object.entries(given).map(([name, text]) => ({
      name,
      as_of: as_of ?? "2026-11-20T00:00:00.000Z",
      bytes: () => pieces(Buffer.from(text)),
    })),
  })

/** Each carrier of a mirror: `MC 15, USDOT 5: FIRST`. */
export const carriersIn = (path: string): ReadonlyArray<string> => {
  const file = new Sqlite(path, { readonly: true })
  try {
    // The query selects one text column.
    return file
      .prepare(
        `select concat('MC ', key / ${dot_limit}, ', USDOT ', key % ${dot_limit}, ': ', name)
         from carrier order by key`,
      )
      .pluck()
      .all() as Array<string>
  } finally {
    file.close()
  }
}

export const legacy_head =
  "docket_number,dot_number,common_stat,contract_stat,broker_stat,legal_name"
export const motus_head = "docket_number,usdot_number,op_auth_type,op_auth_status,legal_name"

export const quoted = (text: string) => `"${text.replaceAll('"', '""')}"`

const text = (head: string, rows: ReadonlyArray<string>) => `${[head, ...rows].join("\n")}\n`

/** An L&I file with these rows. */
export const legacyFile = (...rows: ReadonlyArray<string>) => text(legacy_head, rows)
/** A Motus file with these rows. */
export const motusFile = (...rows: ReadonlyArray<string>) => text(motus_head, rows)

const dotOf = (dot: number) => String(dot).padStart(8, "0")

/** The L&I rows of these dockets. */
export const legacyOf = (dockets: ReadonlyArray<Docket>) =>
  legacyFile(
    ...dockets.map(({ mc, dot, name, active, carrier_only }) => {
      const broker = carrier_only ? "N" : "A"
      const common = active && mc % 2 === 0 ? "A" : "I"
      const contract = active && mc % 2 === 1 ? "A" : "N"
      return `MC${mc},${dotOf(dot)},${common},${contract},${broker},${quoted(name)}`
    }),
  )

/** The Motus rows of these dockets: a broker's authority has its own row. */
export const motusOf = (dockets: ReadonlyArray<Docket>) =>
  motusFile(
    ...dockets.flatMap(({ mc, dot, name, active, carrier_only }) => {
      const row = (type: string, status: string) =>
        `MC${String(mc).padStart(10, "0")},${dot},${type},${status},${quoted(name)}`
      return [
        row("Motor Carrier of Property", active ? "Active" : "Inactive"),
        ...(carrier_only ? [] : [row("Broker of Property", "Active")]),
      ]
    }),
  )
