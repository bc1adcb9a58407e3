/**
 * Suite 14: blobs over HTTP compared with other stores, each on one core, with the client on
 * another.
 */
import { mkdir, rm } from "node:fs/promises"
import { join } from "node:path"
import { machine } from "../harness/machine.ts"
import { interleave, say } from "../harness/series.ts"
import type { Settings, Suite } from "../harness/suite.ts"
import { type Cell, cellTable, type Goal, goalTable, type Operation } from "./figures.ts"
import { startJsonParse } from "./json.ts"
import { type LoadClient, loadClient } from "./load.ts"
import { json_parse, json_put, readers, type Size, startServers, writers } from "./seats.ts"

const kibibyte = 1024
const mebibyte = 1_048_576

/** Large blobs have fewer clients, as in the goals: 256 of 16 MiB would put 4 GiB in flight. */
const sizes: ReadonlyArray<Size> = [
  {
    name: "4 KiB",
    blob_bytes: 4 * kibibyte,
    keys: 1000,
    clients: { put: [1, 32, 64, 256], get: [1, 32, 256] },
  },
  {
    name: "64 KiB",
    blob_bytes: 64 * kibibyte,
    keys: 250,
    clients: { put: [1, 32, 256], get: [1, 32, 256] },
  },
  {
    name: "1 MiB",
    blob_bytes: mebibyte,
    keys: 32,
    clients: { put: [1, 8, 32], get: [1, 8, 32] },
  },
  {
    name: "16 MiB",
    blob_bytes: 16 * mebibyte,
    keys: 8,
    clients: { put: [1, 2], get: [1, 2] },
  },
]

/** The selected sizes and client counts; throws if none match. */
const wanted = ({ sizes: names, clients: counts }: Settings): ReadonlyArray<Size> => {
  const of = (all: ReadonlyArray<number>) => all.filter((n) => !counts || counts.includes(n))
  const found = sizes
    .filter(({ name }) => !names || names.includes(name))
    .map((size) => ({
      ...size,
      clients: { put: of(size.clients.put), get: of(size.clients.get) },
    }))
    .filter(({ clients }) => clients.put.length + clients.get.length > 0)
  if (found.length === 0) {
    throw new Error(`--sizes takes ${sizes.map(({ name }) => name).join(", ")}`)
  }
  return found
}

/** Seconds of warm-up for a server's puts, and for its gets: its code is compiled at runtime. */
const warm_up_s = 3

const goalsOf = (
  operation: Operation,
  against: string,
  all: ReadonlyArray<readonly [size: string, clients: number, ratio: number]>,
  ours = "almanac",
): ReadonlyArray<Goal> =>
  all.map(([size, clients, ratio]) => ({ operation, size, clients, ours, against, ratio }))

/** From the issue for which the volume store was made. */
const goals = [
  ...goalsOf("put", "radosgw", [
    ["4 KiB", 32, 20],
    ["64 KiB", 32, 10],
    ["1 MiB", 8, 4],
    ["16 MiB", 2, 2.5],
  ]),
  ...goalsOf("get", "radosgw", [
    ["4 KiB", 32, 30],
    ["64 KiB", 32, 5],
    ["1 MiB", 8, 2.5],
    ["16 MiB", 2, 2.5],
  ]),
  ...goalsOf("put", "nginx, no fsync", [["16 MiB", 2, 0.4]]),
  ...goalsOf("put", "redis, fsync always", [["4 KiB", 32, 0.5]]),
  ...goalsOf("get", "raw node:http", [["4 KiB", 32, 0.5]]),
  ...goalsOf("put", json_parse, [["16 MiB", 2, 2]], json_put),
]

/** All rounds with blobs of one size, on new servers that are stopped afterwards. */
const measureSize = async (
  size: Size,
  whole: Settings,
  client: LoadClient,
): Promise<ReadonlyArray<Cell>> => {
  const folder = join(whole.folder, size.name.replace(" ", "-"))
  await mkdir(folder)
  await using ends = new AsyncDisposableStack()
  whole.onEnd(() => ends.disposeAsync())
  const onEnd = (stop: () => Promise<void>) => ends.defer(stop)
  onEnd(() => rm(folder, { recursive: true, force: true }))
  const settings = { ...whole, folder, onEnd }
  const started = await startServers(size, settings)
  const jsonParse = startJsonParse(size.blob_bytes)
  onEnd(jsonParse.stop)
  const { name, blob_bytes } = size
  const cells: Array<Cell> = []
  for (const operation of ["put", "get"] as const) {
    const all =
      operation === "put" ? writers(started, size, jsonParse) : await readers(started, size, client)
    for (const [nth, clients] of size.clients[operation].entries()) {
      say(`${name} ${operation}, ${clients} clients`)
      const seats = all.map((seat) => seat({ size, settings, clients, client }))
      const effort = {
        in_flight: clients,
        seconds: whole.seconds,
        runs_max: Number.MAX_SAFE_INTEGER,
      }
      const is_warm = nth > 0
      const seconds = Math.max(warm_up_s, whole.seconds)
      const warm_up = { ...effort, seconds, runs_max: is_warm ? 0 : effort.runs_max }
      const measured = await interleave(seats, effort, whole.rounds, folder, warm_up)
      cells.push({ operation, size: name, blob_bytes, clients, measured })
    }
  }
  return cells
}

export const blob: Suite = async (settings) => {
  const client = loadClient()
  settings.onEnd(client.stop)
  const cells: Array<Cell> = []
  for (const size of wanted(settings)) cells.push(...(await measureSize(size, settings, client)))
  const { folder, rounds, seconds } = settings
  const spent =
    `${rounds} rounds of ${seconds} s each, interleaved, after a discarded warm-up; every ` +
    "server on the first core with all of its processes, the load client on the last. A round " +
    "begins when the previous server is idle. `CPU us`: user and system time of the server per " +
    "operation, until it is idle. `flushes`: flushes of the disk's cache per operation, by any " +
    "program. `client`: how busy the load client's core was."
  const parts = cells.flatMap((cell) => [
    `${cell.size} ${cell.operation}, ${cell.clients} clients:`,
    cellTable(cell),
  ])
  const measured = cells.map((cell) => cell.measured)
  return [await machine(folder, measured, []), spent, goalTable(cells, goals), ...parts].join(
    "\n\n",
  )
}
