/** Suite 21: one thread that answers for blobs, and two: what each thread spends on a request. */
import { readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { startGateway } from "./almanac-gateway.ts"
import { keyOf } from "./blob-almanac.ts"
import { type LoadClient, loadClient } from "./blob-load.ts"
import { usedAt } from "./blob-process.ts"
import { type BlobRequest, unique_mark } from "./blob-request.ts"
import { plainGet, plainPut } from "./blob-server.ts"
import { machine } from "./machine.ts"
import { median, type Round, ratios } from "./round.ts"
import { type Contender, interleave, type Measured, rates, say, spread } from "./series.ts"
import type { Settings, Suite } from "./suite.ts"
import { aligned, number, range } from "./table.ts"

/** As many as the machine that is measured has cores. */
const contestants = [
  { name: "one thread", workers: 1 },
  { name: "two threads", workers: 2 },
]

/** What is asked, of blobs of which size, by how many clients. */
const loads = [
  { name: "get of 4 KiB", operation: "get", blob_bytes: 4096, keys: 500, clients: 32 },
  { name: "get of 16 MiB", operation: "get", blob_bytes: 2 ** 24, keys: 4, clients: 4 },
  { name: "put of 4 KiB", operation: "put", blob_bytes: 4096, keys: 0, clients: 32 },
] as const
type Load = (typeof loads)[number]

/** What a request took of the processor, in microseconds. */
interface Spent extends Round {
  /** On the process's own thread. */
  readonly own_us: number
  /** On the one that answers and spent most: it is what there is no more of at last. */
  readonly busiest_us: number
  /** On all threads. */
  readonly whole_us: number
}

const us_per_s = 1_000_000

/** Microseconds that each thread of a process has used until now. */
const threadsOf = (pid: number): ReadonlyMap<string, number> =>
  new Map(
    readdirSync(`/proc/${pid}/task`).map((thread) => {
      const path = `/proc/${pid}/task/${thread}`
      const name = readFileSync(`${path}/comm`, "utf8").trim()
      const used = usedAt(path) * us_per_s
      return [Number(thread) === pid ? "own" : `${name} ${thread}`, used] as const
    }),
  )

const spentBetween = (
  before: ReadonlyMap<string, number>,
  after: ReadonlyMap<string, number>,
  round: Round,
): Spent => {
  const used = [...after].map(
    ([name, until]) => [name, (until - (before.get(name) ?? 0)) / round.runs] as const,
  )
  const answering = used.filter(([name]) => name === "own" || name.startsWith("blobs"))
  return {
    ...round,
    own_us: used.find(([name]) => name === "own")?.[1] ?? 0,
    busiest_us: Math.max(...answering.map(([, us]) => us)),
    whole_us: used.reduce((sum, [, us]) => sum + us, 0),
  }
}

const services = { ALMANAC_SERVICES: '["blob-storage"]', ALMANAC_COMPUTE__KIND: "none" }

const start = async ({ folder, onEnd }: Settings, client: LoadClient, workers: number) => {
  const settings = { ...services, ALMANAC_BLOB__WORKERS: `${workers}` }
  const { url, blob, pid, stop } = await startGateway(join(folder, `${workers}`), settings)
  onEnd(stop)
  const headers = { authorization: `Bearer ${blob}` }
  const octets = { "content-type": "application/octet-stream" }
  const put = plainPut("POST", "/v1/blobs/stream", { ...headers, ...octets })
  const get = plainGet(`/v1/blobs/${unique_mark}`, { ...headers, accept: octets["content-type"] })
  const port = Number(new URL(url).port)
  let rounds = 0
  const ask = (requests: ReadonlyArray<BlobRequest>, load: Load, seconds: number, keys = 0) => {
    rounds += 1
    const runs_max = keys === 0 ? Number.MAX_SAFE_INTEGER : keys
    const { clients: connections } = load
    const order = { protocol: "http", port, requests, connections, seconds, runs_max } as const
    return client.load({ ...order, round: workers * 10_000 + rounds, is_kept: keys > 0 })
  }
  /** What is sent in the rounds of this load: gets of blobs that were put before, or puts. */
  const requestsOf = async (load: Load) => {
    if (load.operation === "put") return [put(load.blob_bytes)]
    const { kept } = await ask([put(load.blob_bytes)], load, 60, load.keys)
    return kept.map(keyOf).map(get)
  }
  return { pid, ask, requestsOf }
}

const seatOf = (
  name: string,
  { pid, ask }: Awaited<ReturnType<typeof start>>,
  requests: ReadonlyArray<BlobRequest>,
  load: Load,
): Contender<Spent> => ({
  name,
  round: async ({ seconds }) => {
    const before = threadsOf(pid)
    const { round } = await ask(requests, load, seconds)
    return spentBetween(before, threadsOf(pid), round)
  },
})

const row = (load: Load, { series }: Measured<Spent>): ReadonlyArray<ReadonlyArray<string>> => {
  const [first] = series
  return series.map((each) => {
    const middle = (figure: (spent: Spent) => number) => number(median(each.rounds.map(figure)))
    const is_first = first === undefined || each === first
    return [
      load.name,
      each.name,
      range(spread(rates(each))),
      is_first ? "" : range(spread(ratios(rates(each), rates(first)))),
      middle(({ own_us }) => own_us),
      middle(({ busiest_us }) => busiest_us),
      middle(({ whole_us }) => whole_us),
    ]
  })
}

const heads = ["", "", "requests/s", "two / one", "own thread us", "busiest us", "process us"]

export const workers: Suite = async (settings) => {
  const { folder, rounds, seconds, onEnd } = settings
  const client = loadClient()
  onEnd(client.stop)
  const servers = []
  for (const { name, workers: count } of contestants) {
    servers.push({ name, server: await start(settings, client, count) })
  }
  const rows: Array<ReadonlyArray<string>> = []
  const all: Array<Measured<Spent>> = []
  for (const load of loads) {
    say(load.name)
    const seats: Array<Contender<Spent>> = []
    for (const { name, server } of servers) {
      seats.push(seatOf(name, server, await server.requestsOf(load), load))
    }
    const effort = { in_flight: load.clients, seconds, runs_max: Number.MAX_SAFE_INTEGER }
    const measured = await interleave(seats, effort, rounds, folder)
    all.push(measured)
    rows.push(...row(load, measured))
  }
  const spent =
    `${rounds} rounds of ${seconds} s each, interleaved, after one discarded; the load client ` +
    "on the last core, the servers on all of them. Of the processor, in microseconds a request: " +
    "what the process's own thread takes, the one that answers and takes most, and the whole " +
    "process. A thread can have a core: with cores enough one is done in the time of the busiest."
  return [await machine(folder, all, []), spent, aligned([heads, ...rows])].join("\n\n")
}
