/**
 * The log alone, as an upper bound: commits of the same bytes to a JetStream stream with the same
 * settings, with the version checked by the server. No rule, no read model, no row read back.
 *
 * Each commit is written alone: with 16 in flight, atomic batches of waiting commits are slower.
 */
import { randomUUID } from "node:crypto"
import { headers } from "@nats-io/transport-node"
import { Layer, ManagedRuntime } from "effect"
import { ownServerLayer } from "#adapters/bus/own-server.ts"
import { DataFolder } from "#adapters/data-folder/lock.ts"
import { NatsConnection } from "#bus"
import { type Commit, commands_remembered_max } from "#events/log.ts"
import { logStreamConfig } from "#journal"
import type { Contestant } from "../harness/contestant.ts"
import { type Command, eventOf, inTurn } from "./work.ts"

/** Almanac's timeout for an append. */
const timeout = 5_000

/** A worker's last commit. */
interface Last {
  readonly sequence: number
  readonly commands: ReadonlyArray<string>
}

const unwritten: Last = { sequence: 0, commands: [] }

/** As long as the hash of the previous commit, which this contestant does not compute. */
const prev = "0".repeat(64)

/** The commit that Almanac would write. */
const commitOf = (job: Command, { commands }: Last): Commit => {
  const now = new Date()
  return {
    v: 1,
    actor: "bench",
    at: now.toISOString(),
    events: [eventOf(job, now)],
    snapshot: {
      machine: 1,
      value: "ready",
      context: { running_jobs: job.version % 2, job_id: job.job_id },
    },
    commands: [...commands.slice(1 - commands_remembered_max), randomUUID()],
    prev,
  }
}

interface Ack {
  readonly seq?: number
  readonly error?: { readonly description: string }
}

const bus = (folder: string) =>
  NatsConnection.layer.pipe(
    Layer.provide(ownServerLayer()),
    Layer.provide(DataFolder.layer(folder)),
  )

export const bareLog: Contestant = {
  name: "bare JetStream",
  start: async ({ folder }) => {
    const runtime = ManagedRuntime.make(bus(folder))
    const { connection, jsm } = await runtime.runPromise(NatsConnection)
    await jsm.streams.add(logStreamConfig({ stream: "LOG" }))
    const lasts = new Map<string, Last>()

    const run = inTurn(async (job) => {
      const last = lasts.get(job.worker_id) ?? unwritten
      const commit = commitOf(job, last)
      const checks = headers()
      checks.set("Nats-Expected-Last-Subject-Sequence", `${last.sequence}`)
      const options = { headers: checks, timeout }
      const subject = `commit.bench.worker.${job.worker_id}`
      const answer = await connection.request(subject, JSON.stringify(commit), options)
      const { seq, error } = answer.json<Ack>()
      if (seq === undefined) throw new Error(error?.description ?? "no answer of JetStream")
      lasts.set(job.worker_id, { sequence: seq, commands: commit.commands })
    })
    return { run, stop: () => runtime.dispose() }
  },
}
