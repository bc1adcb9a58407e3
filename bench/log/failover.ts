/**
 * Suite: how long no process conducts after the conductor is killed, and after each of three
 * nats-servers is killed, compared with the time to live of its lease.
 */
import { join } from "node:path"
import { setTimeout as pause } from "node:timers/promises"
import { jetstream } from "@nats-io/jetstream"
import { lease_ttl_ms } from "#server/lease.ts"
import { network } from "../../test/world/server/gate.ts"
import {
  bus_names,
  type NatsCluster,
  startNatsCluster,
} from "../../test/world/server/nats-cluster.ts"
import { cleanUp, type Server, startServer } from "../../test/world/server/server.ts"
import { machine } from "../harness/machine.ts"
import { type Contender, interleave, spread } from "../harness/series.ts"
import type { Suite } from "../harness/suite.ts"
import { aligned, number, range } from "../harness/table.ts"

const processes = 3
/** The conductor's own work, once a second, as recorded in the log. */
const work = "commit.share-protection.reconciliation.>"
/** The goal as a multiple of the lease's TTL. Source: issue 10, "It must show". */
const goal = 1.5
/** Milliseconds until the cluster has recovered: longer than any gap. */
const rest_ms = 25_000
const settle_ms = 5_000
const seconds = (ms: number) => ms / 1000

interface Process {
  readonly name: string
  readonly data_dir: string
  readonly environment: Readonly<Record<string, string>>
  server: Server
}

const startAll = (cluster: NatsCluster, folder: string) =>
  Promise.all(
    Array.from({ length: processes }, async (_, n): Promise<Process> => {
      const name = `process-${n + 1}`
      const environment = {
        ALMANAC_SERVICES: "share-protection",
        ALMANAC_LOG__LEVEL: "error",
        ALMANAC_COMPUTE__KIND: "none",
        ALMANAC_CONDUCTOR__RECONCILIATION_INTERVAL: "1",
        ALMANAC_CLUSTER__NODE_ID: name,
        ALMANAC_NATS__URL: await cluster.urlFor(name),
        ALMANAC_NATS__REPLICAS: "3",
      }
      const data_dir = join(folder, name)
      return { name, data_dir, environment, server: await startServer(data_dir, environment) }
    }),
  )

/** When the conductor worked since a time (epoch milliseconds), by the log's own clock. */
const workSince = (cluster: NatsCluster, since: Date) =>
  cluster.ask(async (_, connection) => {
    const consumers = jetstream(connection).consumers
    const consumer = await consumers.get("ALMANAC_LOG", {
      filter_subjects: work,
      opt_start_time: since.toISOString(),
      deliver_policy: "by_start_time",
    })
    const times: Array<number> = []
    const { num_pending } = await consumer.info()
    if (num_pending === 0) return times
    for await (const message of await consumer.fetch({ max_messages: num_pending })) {
      times.push(message.time.getTime())
    }
    return times
  })

/** The longest gap from the fault on. */
const silence = (from: number, times: ReadonlyArray<number>) =>
  [from, ...times.filter((at) => at > from)].reduce(
    ({ before, longest }, at) => ({ before: at, longest: Math.max(longest, at - before) }),
    { before: from, longest: 0 },
  ).longest

/** A round with one fault, and its gap. */
const roundOf = (
  cluster: NatsCluster,
  name: string,
  fault: () => Promise<() => Promise<void>>,
): Contender => ({
  name,
  round: async () => {
    const began = new Date()
    const heal = await fault()
    await pause(rest_ms)
    const gap_ms = silence(began.getTime(), await workSince(cluster, began))
    await heal()
    await pause(settle_ms)
    return { runs: 1, runs_per_s: 1000 / gap_ms, p50_ms: gap_ms, p99_ms: gap_ms }
  },
})

const killHolder = (cluster: NatsCluster, all: ReadonlyArray<Process>) => async () => {
  const query = { last_by_subj: "$KV.ALMANAC_LEASES.share-protection-conductor" }
  const kept = await cluster.ask((jsm) => jsm.streams.getMessage("KV_ALMANAC_LEASES", query))
  const holder = kept?.json<{ readonly holder: string }>().holder
  const one = all.find(({ name }) => name === holder)
  if (one === undefined) throw new Error("no process conducts")
  await one.server.killAlone()
  return async () => {
    one.server = await startServer(one.data_dir, one.environment)
  }
}

export const failover: Suite = async ({ folder, rounds, onEnd }) => {
  onEnd(cleanUp)
  const cluster = await startNatsCluster(network())
  onEnd(cluster.stop)
  const all = await startAll(cluster, folder)
  await pause(settle_ms)
  const faults = [
    roundOf(cluster, "the conductor", killHolder(cluster, all)),
    ...bus_names.map((name) =>
      roundOf(cluster, name, async () => {
        await cluster.bus(name).kill()
        return () => cluster.bus(name).start()
      }),
    ),
  ]
  const effort = { in_flight: 1, seconds: 0, runs_max: 0 }
  const measured = await interleave(faults, effort, rounds, folder)
  const rows = measured.series.map(({ name, rounds }) => {
    const gaps = rounds.map(({ p50_ms }) => seconds(p50_ms))
    const of_ttl = spread(gaps.map((gap) => gap / seconds(lease_ttl_ms)))
    return [name, range(spread(gaps)), range(of_ttl), gaps.map(number).join(" ")]
  })
  const spent =
    `${rounds} rounds; ${processes} processes on three nats-servers with three copies, all on ` +
    `this machine; the lease's TTL is ${seconds(lease_ttl_ms)} s, the goal at most ${goal} of it.`
  return [
    await machine(folder, [measured], []),
    spent,
    aligned([["killed", "silent for s", "of the TTL", "round by round"], ...rows]),
  ].join("\n\n")
}
