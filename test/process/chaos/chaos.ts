/**
 * Three nats-servers and several processes under load. Each of them in turn is killed, paused, and
 * cut off from the network. In every case, acknowledged operations are in the log exactly once, all
 * processes return the same state, and subscribers receive all events in order.
 *
 * Source: issue 10, "It must show"; decision 0141.
 */
import assert from "node:assert/strict"
import { createHash, randomBytes } from "node:crypto"
import { join } from "node:path"
import { setTimeout as pause } from "node:timers/promises"
import { type Seeded, seeded } from "../../world/seeded.ts"
import { connect } from "../../world/server/client.ts"
import { network } from "../../world/server/gate.ts"
import {
  type BusName,
  bus_names,
  type NatsCluster,
  startNatsCluster,
} from "../../world/server/nats-cluster.ts"
import { newFolder, outputOf, type Server, startServer, until } from "../../world/server/server.ts"
import { type Checked, chaosCheck } from "./check.ts"
import { chaosClient, emptyRecord, type Record, type Seat } from "./load.ts"

const clients_default = 6
/** Timeout of a client request; a paused process never responds. */
const answer_ms_max = 4_000
/** Maximum time from the end of a fault until every process responds again. */
const settled_ms_max = 120_000
/** Operations that each process acknowledges before the next fault. */
const settled_count = 5
/** Minimum duration of a fault: past a lease's TTL (10 s), so that another process acquires it. */
const fault_ms = 12_500

export const kinds = ["killed", "paused", "cut off"] as const
export type Kind = (typeof kinds)[number]

/** The kind of fault and its victim: a nats-server, or a process by its number from 0. */
export interface Fault {
  readonly kind: Kind
  readonly who: BusName | number
  /** Minimum duration in milliseconds; past a lease's TTL by default. */
  readonly ms?: number
}

export interface ChaosRound {
  readonly what: string
  /** The longest time without an acknowledged operation. */
  readonly gap_ms: number
  readonly acknowledged: number
  readonly unanswered: number
}

export interface ChaosOptions {
  readonly seed: number
  readonly processes: number
  readonly clients?: number
  readonly faults: (random: Seeded, world: World) => AsyncIterable<Fault> | Iterable<Fault>
  readonly onRound?: (round: ChaosRound) => void
}

/** One process of the product, with its own folder. */
interface Process extends Seat {
  readonly data_dir: string
  readonly environment: Readonly<{ [name: string]: string }>
  server: Server
}

const environmentOf = (name: string, url: string, shared: { readonly [name: string]: string }) => ({
  ...shared,
  ALMANAC_CLUSTER__NODE_ID: name,
  ALMANAC_NATS__URL: url,
  ALMANAC_NATS__REPLICAS: "3",
})

const startProcess = async (
  data_dir: string,
  environment: { readonly [name: string]: string },
  token: string,
) => {
  const server = await startServer(data_dir, environment, settled_ms_max)
  return { server, client: connect(server.url, token, answer_ms_max) }
}

const startWorld = async (count: number) => {
  const net = network()
  const cluster = await startNatsCluster(net)
  const token = randomBytes(24).toString("base64url")
  const sha256 = createHash("sha256").update(token).digest("hex")
  const shared = {
    // This service has no aggregates, so the log contains only events that the load caused.
    ALMANAC_SERVICES: "carrier-search",
    ALMANAC_LOG__LEVEL: "warning",
    ALMANAC_WEBHOOKS__MAX_PER_PROJECT: "1000",
    ALMANAC_CLUSTER__SECRET: randomBytes(32).toString("base64url"),
    ALMANAC_AUTH__TOKENS: JSON.stringify([{ name: "chaos", sha256, roles: ["admin"] }]),
  }
  const processes = await Promise.all(
    Array.from({ length: count }, async (_, n): Promise<Process> => {
      const name = `process-${n + 1}`
      const environment = environmentOf(name, await cluster.urlFor(name), shared)
      const data_dir = join(newFolder(), name)
      return { name, data_dir, environment, ...(await startProcess(data_dir, environment, token)) }
    }),
  )
  return { net, cluster, processes, token }
}

export type World = Awaited<ReturnType<typeof startWorld>>

const processOf = ({ processes }: World, n: number) => {
  const found = processes[n]
  assert(found, `there is no process ${n}`)
  return found
}

/** Starts a fault; returns a function that ends it. */
const begin = async (world: World, { kind, who }: Fault): Promise<() => Promise<void>> => {
  const { net, cluster, token } = world
  const heal = async () => net.heal()
  if (typeof who === "string") {
    const bus = cluster.bus(who)
    if (kind === "killed") {
      await bus.kill()
      return () => bus.start()
    }
    if (kind === "cut off") cluster.cutOff(who)
    else bus.pause()
    return kind === "cut off" ? heal : async () => void bus.resume()
  }
  const one = processOf(world, who)
  if (kind === "killed") {
    await one.server.killAlone()
    return async () => {
      one.client.close()
      Object.assign(one, await startProcess(one.data_dir, one.environment, token))
    }
  }
  if (kind === "cut off") cluster.cutOffUser(one.name)
  else one.server.signal("SIGSTOP")
  return kind === "cut off" ? heal : async () => void one.server.signal("SIGCONT")
}

/** The longest time between two acknowledged operations after `since`. */
const longestGap = ({ acknowledged }: Record, since: number) => {
  const times = [since, ...acknowledged.map(({ at }) => at).filter((at) => at > since)]
  return times.reduce((gap, at, n) => Math.max(gap, at - (times[n - 1] ?? at)), 0)
}

const nameOf = (world: World, { kind, who }: Fault) =>
  `${typeof who === "string" ? who : processOf(world, who).name} ${kind}`

const settled = (world: World, record: Record, check: () => void) => {
  const since = performance.now()
  return until("every process to answer again", settled_ms_max, () => {
    check()
    const news = record.acknowledged.filter(({ at }) => at > since)
    return world.processes.every(
      ({ name }) => news.filter(({ seat }) => seat === name).length >= settled_count,
    )
  })
}

const startClients = (world: World, record: Record, { seed, clients }: ChaosOptions) => {
  const [first, ...others] = world.processes
  assert(first, "there is a process")
  let is_over = false
  let failure: unknown
  const all = Array.from({ length: clients ?? clients_default }, (_, n) =>
    chaosClient(
      {
        record,
        random: seeded(seed * 1_000 + n),
        seats: [first, ...others],
        is_over: () => is_over || failure !== undefined,
      },
      n,
    ).catch((cause: unknown) => {
      failure ??= cause
    }),
  )
  const check = () => {
    if (failure !== undefined) throw failure
  }
  return {
    check,
    stop: async () => {
      is_over = true
      await Promise.all(all)
      check()
    },
  }
}

/** Checks everything, with clients that have long timeouts. */
const checkAll = async ({ processes, token }: World, record: Record) => {
  const patient = processes.map((one) => ({ ...one, client: connect(one.server.url, token) }))
  try {
    return await chaosCheck(patient, record)
  } finally {
    for (const { client } of patient) client.close()
  }
}

/** Applies the faults one after another under constant load, and then checks everything. */
export const chaos = async (options: ChaosOptions): Promise<Checked> => {
  const world = await startWorld(options.processes)
  const record = emptyRecord()
  const random = seeded(options.seed)
  const load = startClients(world, record, options)
  try {
    await settled(world, record, load.check)
    for await (const fault of options.faults(random, world)) {
      const before = { ...record, count: record.acknowledged.length }
      const since = performance.now()
      const end = await begin(world, fault)
      await pause(fault.ms ?? fault_ms)
      load.check()
      await end()
      await settled(world, record, load.check)
      options.onRound?.({
        what: nameOf(world, fault),
        gap_ms: longestGap(record, since),
        acknowledged: record.acknowledged.length - before.count,
        unanswered: record.unanswered - before.unanswered,
      })
    }
    await load.stop()
    const checked = await checkAll(world, record)
    for (const { server } of world.processes) {
      assert.deepEqual(await server.stop(), { code: 0, signal: null })
    }
    return checked
  } catch (cause) {
    const lines = world.processes.map(({ name, server }) => `${name}:\n${outputOf(server)}`)
    throw new Error(`seed ${options.seed}: ${cause}\n${lines.join("\n")}`, { cause })
  } finally {
    await load.stop().catch(() => undefined)
    for (const { client } of world.processes) client.close()
    await world.cluster.stop()
  }
}

/** Every nats-server and every process: killed, paused and cut off, in a seeded order. */
export const everyFault = (random: Seeded, { processes }: World): ReadonlyArray<Fault> => {
  const all = kinds.flatMap((kind) => [
    ...bus_names.map((who): Fault => ({ kind, who })),
    ...processes.map((_, who): Fault => ({ kind, who })),
  ])
  return all
    .map((fault) => ({ fault, at: random.next() }))
    .toSorted((one, other) => one.at - other.at)
    .map(({ fault }) => fault)
}

/** The current leader of a stream. */
export const leaderOf = async ({ cluster }: { readonly cluster: NatsCluster }, stream: string) => {
  const found = await cluster.ask((jsm) => jsm.streams.info(stream))
  const leader = bus_names.find((name) => name === found.cluster?.leader)
  assert(leader, `${stream} has a leader`)
  return leader
}

/** The number of the process that holds a lease. */
export const holderOf = async ({ cluster, processes }: World, lease: string) => {
  const query = { last_by_subj: `$KV.ALMANAC_LEASES.${lease}` }
  const found = await cluster.ask((jsm) => jsm.streams.getMessage("KV_ALMANAC_LEASES", query))
  const { holder } = found?.json<{ holder: string }>() ?? { holder: "" }
  const number = processes.findIndex(({ name }) => name === holder)
  assert(number >= 0, `${lease} is held by ${holder}`)
  return number
}
