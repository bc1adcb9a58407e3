/** Contestants of the blob suite for blobs of one size, each started in its own folder. */
import { join } from "node:path"
import { type Contender, orSkip } from "../harness/series.ts"
import type { Settings } from "../harness/suite.ts"
import { startAlmanac } from "./almanac.ts"
import type { BlobRow, Operation } from "./figures.ts"
import type { startJsonParse } from "./json.ts"
import type { LoadClient } from "./load.ts"
import { startNginx } from "./nginx.ts"
import {
  descendants,
  flushesOf,
  pause_ms_max,
  pin,
  rested,
  server_core,
  usedSeconds,
} from "./process.ts"
import { startRadosgw } from "./radosgw.ts"
import { startRaw } from "./raw.ts"
import { startRedis } from "./redis.ts"
import { type BlobRequest, uniqueName } from "./request.ts"
import { type BlobServer, gibibyte } from "./server.ts"
import { startSwift } from "./swift.ts"

type Start = (folder: string, blob_bytes: number) => Promise<BlobServer>

const starts: Readonly<Record<string, Start>> = {
  almanac: startAlmanac,
  radosgw: startRadosgw,
  swift: startSwift,
  "nginx, no fsync": startNginx,
  "redis, fsync always": startRedis,
  "raw node:http": startRaw,
}

/** Names of the series other than a server's puts and gets. */
export const json_put = "almanac, JSON"
export const json_parse = "JSON.parse alone"

/** Puts of blobs from this size on end a round early. */
const large_bytes = 1_048_576
/** Maximum bytes per round of puts: enough for a rate, and little enough for the disk. */
const round_bytes_max = gibibyte
const unbounded = Number.MAX_SAFE_INTEGER
/** Clients and maximum seconds of the puts that fill a store before it is read. */
const fill_clients = 8
const fill_seconds_max = 60

export interface Size {
  readonly name: string
  readonly blob_bytes: number
  /** Number of different blobs to read. */
  readonly keys: number
  readonly clients: Readonly<Record<Operation, ReadonlyArray<number>>>
}

export interface Started {
  readonly name: string
  readonly server: BlobServer
  /** The server's current processes. */
  readonly pids: () => ReadonlyArray<number>
}

/** Makes the names and bytes of each round unique. */
let rounds_begun = 0

const orderOf = ({ protocol, port }: BlobServer, requests: ReadonlyArray<BlobRequest>) => ({
  protocol,
  port,
  requests,
  round: ++rounds_begun,
  is_kept: false,
})

/** Stores the blobs to read; returns the requests that read them, or none if the puts fail. */
const fill = async (
  { name, server }: Started,
  { blob_bytes, keys }: Size,
  client: LoadClient,
): Promise<ReadonlyArray<BlobRequest>> => {
  const order = orderOf(server, [server.put(blob_bytes)])
  const bounds = { connections: Math.min(fill_clients, keys), seconds: fill_seconds_max }
  const request = { ...order, ...bounds, runs_max: keys, is_kept: true }
  const loaded = await orSkip(name, () => client.load(request))
  const kept = loaded?.kept ?? []
  const names = kept.map((_, n) => uniqueName(order.round, n))
  return (server.keysOf?.(kept) ?? names).map(server.get)
}

/** Starts a server; its processes are those that did not exist before. */
const start = async (
  name: string,
  begin: Start,
  { blob_bytes }: Size,
  { folder, onEnd }: Settings,
): Promise<Started> => {
  const before = new Set(descendants(process.pid))
  const server = await begin(join(folder, name.split(",")[0] ?? name), blob_bytes)
  onEnd(server.stop)
  const roots = descendants(process.pid).filter((pid) => !before.has(pid))
  const pids = () => [...new Set(roots.flatMap((pid) => [pid, ...descendants(pid)]))]
  pin(pids(), server_core)
  return { name, server, pids }
}

/** Starts all servers that are installed. */
export const startServers = async (
  size: Size,
  settings: Settings,
): Promise<ReadonlyArray<Started>> => {
  const started: Array<Started> = []
  for (const [name, begin] of Object.entries(starts)) {
    const one = await orSkip(name, () => start(name, begin, size, settings))
    if (one !== undefined) started.push(one)
  }
  return started
}

export interface Measuring {
  readonly size: Size
  readonly settings: Settings
  readonly clients: number
  readonly client: LoadClient
}

/** A contestant of one operation, with any number of clients. */
export type Seat = (measuring: Measuring) => Contender<BlobRow>

const runsMax = ({ size, settings, clients }: Measuring, { room_bytes }: BlobServer) => {
  if (size.blob_bytes < large_bytes) return unbounded
  const rounds = (settings.rounds + 1) * size.clients.put.length
  const bytes = Math.min(round_bytes_max, room_bytes / rounds)
  return Math.max(clients, Math.floor(bytes / size.blob_bytes))
}

/** One round, with its cost for the server's processes and the disk. */
const contender = (
  name: string,
  { server, pids }: Started,
  requests: ReadonlyArray<BlobRequest>,
  measuring: Measuring,
): Contender<BlobRow> => ({
  name,
  round: async ({ seconds }) => {
    const { settings, clients: connections, client } = measuring
    const is_put = (requests[0]?.blob_bytes ?? 0) > 0
    const runs_max = is_put ? runsMax(measuring, server) : unbounded
    const order = { ...orderOf(server, requests), connections, seconds, runs_max }
    const flushes = await flushesOf(settings.folder)
    const processes = pids()
    const before = [usedSeconds(processes), flushes(), await server.syncs?.()] as const
    const { round } = await client.load(order)
    await rested(pids, is_put ? pause_ms_max : 0)
    const after = [usedSeconds(processes), flushes(), await server.syncs?.()] as const
    if (is_put) await server.clear?.()
    const perRun = (from: number | undefined, to: number | undefined) =>
      from === undefined || to === undefined ? undefined : (to - from) / round.runs
    return {
      ...round,
      cpu_us: (perRun(before[0], after[0]) ?? 0) * 1e6,
      flushes: perRun(before[1], after[1]),
      syncs: perRun(before[2], after[2]),
    }
  },
})

/** Contestants of a table of gets: every server that holds the blobs to read. */
export const readers = async (
  started: ReadonlyArray<Started>,
  size: Size,
  client: LoadClient,
): Promise<ReadonlyArray<Seat>> => {
  const seats: Array<Seat> = []
  for (const one of started) {
    const requests = await fill(one, size, client)
    if (requests.length < size.keys) continue
    const seat =
      (name: string, port: number): Seat =>
      (measuring) =>
        contender(name, { ...one, server: { ...one.server, port } }, requests, measuring)
    const { port, other } = one.server
    seats.push(seat(one.name, port))
    if (other !== undefined) seats.push(seat(other.name, other.port))
  }
  return seats
}

/**
 * Contestants of a table of puts: every server, also with JSON; for large blobs, JSON.parse alone.
 */
export const writers = (
  started: ReadonlyArray<Started>,
  { blob_bytes }: Size,
  jsonParse: ReturnType<typeof startJsonParse>,
): ReadonlyArray<Seat> => {
  const none = { cpu_us: 0, flushes: undefined, syncs: undefined }
  const parse: Contender<BlobRow> = {
    name: json_parse,
    round: async ({ seconds }) => ({ ...(await jsonParse.round(seconds)), ...none }),
  }
  const puts = started.flatMap((one): ReadonlyArray<Seat> => {
    const { put, putJson } = one.server
    const seat =
      (name: string, request: BlobRequest): Seat =>
      (measuring) =>
        contender(name, one, [request], measuring)
    const plain = seat(one.name, put(blob_bytes))
    return putJson === undefined ? [plain] : [plain, seat(`${one.name}, JSON`, putJson(blob_bytes))]
  })
  return blob_bytes < large_bytes ? puts : [...puts, () => parse]
}
