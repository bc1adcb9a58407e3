/** Tables of the blob suite's measurements, and its goals with the results. */

import { median } from "../harness/round.ts"
import { type Measured, rates, ratioSpread, type Series, spread } from "../harness/series.ts"
import { aligned, number, range } from "../harness/table.ts"
import type { BlobRound } from "./request.ts"

export interface BlobRow extends BlobRound {
  /** User and system time of all server processes, per operation. */
  readonly cpu_us: number
  /** Flushes of the disk's cache per operation, by any process; undefined if unknown. */
  readonly flushes: number | undefined
  /** Syncs per operation by the server's own count. */
  readonly syncs: number | undefined
}

export type Operation = "put" | "get"

/** All contestants with blobs of one size and one number of clients. */
export interface Cell {
  readonly operation: Operation
  readonly size: string
  readonly blob_bytes: number
  readonly clients: number
  readonly measured: Measured<BlobRow>
}

const megabyte = 1e6

const middle = (
  { rounds }: Series<BlobRow>,
  figure: (row: BlobRow) => number | undefined,
): number | undefined => {
  const values = rounds.map(figure).filter((value) => value !== undefined)
  return values.length === 0 ? undefined : median(values)
}

const textOf = (value: number | undefined) => (value === undefined ? "" : number(value))

/** One row per contestant. */
export const cellTable = ({ operation, blob_bytes, measured: { series } }: Cell): string => {
  const own = series.find(({ name }) => name === "almanac")
  const rows = series.map((each) => {
    const ratio = ratioSpread(own, each)
    const rate = spread(rates(each))
    const busy = middle(each, ({ client_busy }) => client_busy)
    return [
      each.name,
      range(rate),
      number((rate.median * blob_bytes) / megabyte),
      ...[middle(each, ({ p50_ms }) => p50_ms), middle(each, ({ p99_ms }) => p99_ms)].map(textOf),
      textOf(middle(each, ({ p999_ms }) => p999_ms)),
      textOf(middle(each, ({ cpu_us }) => cpu_us)),
      textOf(middle(each, ({ flushes }) => flushes)),
      `${Math.round((busy ?? 0) * 100)}%`,
      ratio ? range(ratio) : "",
    ]
  })
  const heads = ["", `${operation}s/s`, "MB/s", "p50 ms", "p99 ms", "p99.9 ms", "CPU us", "flushes"]
  return aligned([[...heads, "client", "almanac / this"], ...rows])
}

export interface Goal {
  readonly operation: Operation
  readonly size: string
  readonly clients: number
  /** The series whose rate is divided by that of `against`. */
  readonly ours: string
  readonly against: string
  /** The minimum ratio. */
  readonly ratio: number
}

/** Maximum syncs of Almanac per put, with this many clients and blobs this small. */
export const sync_goal = { size: "4 KiB", clients: 64, share: 1 / 20 }

const find = (cells: ReadonlyArray<Cell>, goal: Pick<Goal, "operation" | "size" | "clients">) =>
  cells.find(
    ({ operation, size, clients }) =>
      operation === goal.operation && size === goal.size && clients === goal.clients,
  )

const named = (cell: Cell | undefined, wanted: string) =>
  cell?.measured.series.find(({ name }) => name === wanted)

const verdict = (is_reached: boolean | undefined) =>
  is_reached === undefined ? "not measured" : is_reached ? "reached" : "missed"

const goalRow = (cells: ReadonlyArray<Cell>, goal: Goal) => {
  const { operation, size, clients, ours, against, ratio: wanted } = goal
  const cell = find(cells, goal)
  const theirs = named(cell, against)
  const ratio = theirs && ratioSpread(named(cell, ours), theirs)
  const what = `${size} ${operation}, ${clients} clients: ${ours} / ${against}`
  const is_reached = ratio && ratio.median >= wanted
  return [what, `at least ${wanted}`, ratio ? range(ratio) : "", verdict(is_reached)]
}

const syncRow = (cells: ReadonlyArray<Cell>) => {
  const { size, clients, share } = sync_goal
  const ours = named(find(cells, { operation: "put", size, clients }), "almanac")
  const counted = ours && middle(ours, ({ syncs }) => syncs)
  const flushed = ours && middle(ours, ({ flushes }) => flushes)
  const value = counted ?? flushed
  const by = counted === undefined ? "flushes of the disk" : "fdatasync, by its own count"
  const what = `${size} put, ${clients} clients: ${by} per put`
  const is_reached = value === undefined ? undefined : value <= share
  return [what, `at most ${share}`, textOf(value), verdict(is_reached)]
}

/** Each goal with its target and the result. */
export const goalTable = (cells: ReadonlyArray<Cell>, goals: ReadonlyArray<Goal>): string =>
  aligned([
    ["goal", "wanted", "median (min..max)", ""],
    ...goals.map((goal) => goalRow(cells, goal)),
    syncRow(cells),
  ])
