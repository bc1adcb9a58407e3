/**
 * Carriers of the legacy file without a USDOT number. A docket may have several, distinguished only
 * by name. Source: decision 0165.
 */
import type Sqlite from "better-sqlite3"
import { batched } from "#adapters/carrier-search/batch.ts"
import { csvCell, dot_limit, key_sql } from "#adapters/carrier-search/mirror-file.ts"

const staging = `
  create temp table unnumbered (
    mc integer not null,
    name text not null,
    is_broker integer not null,
    primary key (mc, name)
  ) strict, without rowid;
`

/** A broker's row excludes carriers with the same docket and name. */
const insert_row = `
  insert into unnumbered values (?, ?, ?)
  on conflict (mc, name) do update set is_broker = 1 where excluded.is_broker > is_broker
`

/** Carriers per page, which limits memory. */
const page_rows = 2 ** 14

const next_page = `
  select mc, name from unnumbered where (mc, name) > (?, ?) and is_broker = 0
  order by mc, name limit ${page_rows}
`

/** Inserts a carrier unless the key is taken. */
const insert_carrier = `
  insert into carrier values (${key_sql}, ?, ?) on conflict (key) do nothing
`

export interface Unnumbered {
  readonly add: (mc: number, name: string, is_broker: boolean) => void
  /**
   * Inserts the collected carriers, except those excluded by a broker's row. Call this after all
   * numbered carriers are in the table.
   */
  readonly insertAll: () => void
}

/** Inserts a carrier at the first free number from `first` on, and returns the number after it. */
const carrierInserter = (file: Sqlite.Database) => {
  const carrier = file.prepare(insert_carrier)
  return (mc: number, first: number, name: string) => {
    const csv_cell = csvCell(name)
    for (let dot = first; dot < dot_limit; dot++) {
      const { changes } = carrier.run(mc, dot, name, csv_cell)
      if (changes === 1) return dot + 1
    }
    throw new Error(`MC ${mc} has too many carriers`)
  }
}

/**
 * Collects carriers in a temporary table of `file`. They are inserted in the order of their names
 * at numbers that their docket does not use, so the result does not depend on the order of rows.
 */
export const unnumberedOf = (file: Sqlite.Database): Unnumbered => {
  file.exec(staging)
  const row = file.prepare(insert_row)
  const rows = batched((mc, is_broker, name) => void row.run(mc, name, is_broker))
  const insertAll = () => {
    rows.flush()
    const next = file.prepare(next_page).raw()
    const insert = carrierInserter(file)
    let [mc, name, free] = [0, "", 0]
    let page: ReadonlyArray<readonly [number, string]>
    do {
      // The statement's own columns.
      page = next.all(mc, name) as typeof page
      for (const [docket, next_name] of page) {
        free = insert(docket, docket === mc ? free : 0, next_name)
        ;[mc, name] = [docket, next_name]
      }
    } while (page.length === page_rows)
  }
  return { add: (mc, name, is_broker) => rows.add(mc, is_broker ? 1 : 0, name), insertAll }
}
