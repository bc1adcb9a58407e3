/**
 * The world of a simulation: everything outside the log, with faults drawn from the seed.
 *
 * When a machine dies, its operations stop in the middle, and no response arrives from it.
 */
import { createHash, type Hash } from "node:crypto"
import { Effect } from "effect"
import type { Agent } from "#actors/share-protection/ports/agents.ts"
import { makeLiveWorkers } from "#actors/share-protection/ports/live-workers.ts"
import type { Recorded } from "#events/log.ts"
import type { Message } from "#schemas/message.ts"
import type { WorkerId } from "#schemas/share-protection/id.ts"
import type { LeaseMode } from "#schemas/share-protection/lease.ts"
import { type Seeded, seeded } from "../../seeded.ts"
import { makeVirtualTime, type VirtualTime } from "../../virtual-time.ts"
import { holdsTogether, mayExpire, noteExpendable } from "./laws.ts"
import {
  type Happened,
  type Law,
  noRecords,
  type Records,
  takeFleet,
  takeJob,
  takeLease,
  takeLedger,
  takeRollout,
  takeWorker,
} from "./records.ts"
import { takeBackup, takePolicy, takeRestore, takeTarget } from "./resources.ts"

/** A running engine. */
export interface EngineCall {
  readonly machine: Machine
  readonly mode: LeaseMode
}

interface SimulatedSnapshot {
  readonly tags: ReadonlyArray<string>
  readonly taken_at: string
}

export interface SimulatedRepository {
  format: number
  /** Tags by snapshot id. */
  readonly snapshots: Map<string, SimulatedSnapshot>
  /** Removed snapshots that can be recovered. */
  readonly forgotten: Map<string, SimulatedSnapshot>
  readonly calls: Set<EngineCall>
}

/** A machine with an agent. */
export interface Machine {
  readonly worker_id: WorkerId
  is_alive: boolean
  /** Whether its agent reuses the id of one that died there, and knows none of its jobs. */
  readonly is_anew: boolean
  /** End of the network outage of the machine, in epoch milliseconds. */
  cut_until: number
}

export interface World {
  readonly seed: number
  readonly random: Seeded
  readonly time: VirtualTime
  readonly records: Records
  /** The first broken law, and its time. */
  broken: string | undefined
  /** Whether faults have ended. */
  is_calm: boolean
  readonly repositories: Map<string, SimulatedRepository>
  readonly machines: Map<string, Machine>
  readonly agents: Map<string, Agent>
  /** Payloads by href, and hrefs by name. */
  readonly secrets: Map<string, string>
  readonly secret_names: Map<string, string>
  /** Sources prepared for jobs, by job. */
  readonly prepared: Map<string, Machine>
  /** Number of occurrences of each fault and each event. */
  readonly tally: Map<string, number>
  readonly heard: ReturnType<typeof makeLiveWorkers>
  /** Hash over all writes. */
  readonly chain: Hash
  /** The most recent writes, with the clock's time. */
  readonly written: Array<{ readonly now: number; readonly batch: ReadonlyArray<Recorded> }>
}

/** Number of writes kept for the report of a broken law. */
const written_max = 40

const start = Date.parse("2026-11-20T12:00:00.000Z")

export const makeWorld = (seed: number): World => {
  const random = seeded(seed)
  return {
    seed,
    random,
    time: makeVirtualTime(start, random),
    records: noRecords(),
    broken: undefined,
    is_calm: false,
    repositories: new Map(),
    machines: new Map(),
    agents: new Map(),
    secrets: new Map(),
    secret_names: new Map(),
    prepared: new Map(),
    tally: new Map(),
    heard: makeLiveWorkers(),
    chain: createHash("sha256"),
    written: [],
  }
}

export const count = ({ tally }: World, what: string) => tally.set(what, (tally.get(what) ?? 0) + 1)

/** Whether a fault with this probability occurs; never once the world is calm. */
export const happens = (world: World, fault: string, probability: number) => {
  if (world.is_calm || world.random.next() >= probability) return false
  count(world, fault)
  return true
}

/** Waits for a random time, in milliseconds. */
export const pause = ({ random }: World, min_ms: number, max_ms: number) =>
  Effect.suspend(() => Effect.sleep(random.between(min_ms, max_ms)))

/** Continues only on a machine that is alive. */
export const onMachine = <A, E, R>(machine: Machine, effect: Effect.Effect<A, E, R>) =>
  Effect.suspend((): Effect.Effect<A, E, R> => (machine.is_alive ? effect : Effect.never))

export const isCut = ({ time }: World, { is_alive, cut_until }: Machine) =>
  !is_alive || time.now() < cut_until

/** Stops all activity of the machine. */
export const kill = (world: World, machine: Machine) => {
  machine.is_alive = false
  // Another machine may have taken its place.
  if (world.machines.get(machine.worker_id) === machine) world.agents.delete(machine.worker_id)
  for (const { calls } of world.repositories.values()) {
    for (const call of calls) if (call.machine === machine) calls.delete(call)
  }
}

export const law = (world: World) => (holds: boolean, what: string) => {
  if (holds || world.broken !== undefined) return
  world.broken = `${new Date(world.time.now()).toISOString()}: ${what}`
}

/** Processes one write of the log, with all its commits. */
export const witness = (world: World, batch: ReadonlyArray<Recorded>) => {
  world.written.push({ now: world.time.now(), batch })
  if (world.written.length > written_max) world.written.shift()
  for (const recorded of batch) {
    world.chain.update(recorded.hash)
    take(world, recorded)
  }
  noteExpendable(world.records)
  holdsTogether(world.records, law(world))
}

/** The most recent writes as text. */
export const story = ({ written }: World) =>
  written.map(({ now, batch }) => {
    const lines = batch.map(({ stream, commit }) => {
      const name = stream.replace("share-protection.", "")
      return `  ${name}: ${commit.events.map((event) => JSON.stringify(event)).join(", ")}`
    })
    const command_id = batch[0]?.commit.commands.at(-1)
    return [`${new Date(now).toISOString()} ${command_id}`, ...lines].join("\n")
  })

const take = (world: World, { stream, position, commit }: Recorded) => {
  const { records } = world
  const [, noun, id = ""] = stream.split(".")
  for (const event of commit.events) {
    count(world, event.type)
    judge(world, id, event, Number(commit.cause ?? 0))
    // A stream has only events of its noun, so the taker's type is correct.
    takers[noun ?? ""]?.(records, law(world), { id, event: event as never, position })
  }
}

/** Checks an event against the state of the world, before it is recorded. */
const judge = (world: World, id: string, event: Message, cause: number) => {
  const { records, repositories } = world
  const snapshotsOf = (backup_id: string | null | undefined) =>
    [...repositories.values()].flatMap(({ snapshots }) =>
      [...snapshots].filter(([, { tags }]) => tags.includes(`backup=${backup_id}`)),
    )
  if (event.type === "BackupExpired") {
    const is_allowed = mayExpire(records, id, cause)
    law(world)(is_allowed, "retention never expires what the policy keeps")
  }
  if (event.type === "BackupCompleted" && "engine_snapshot_id" in event) {
    const is_there = snapshotsOf(id).some(([snapshot]) => snapshot === event.engine_snapshot_id)
    law(world)(is_there, "a backup that is made has its snapshot")
  }
  if (event.type === "JobFailed" && String(detailOf(event)).includes("its agent restarted")) {
    count(world, "a worker forgot a job")
    const machine = world.machines.get(records.jobs.get(id)?.hold?.worker_id ?? "")
    law(world)(machine?.is_anew === true, "no job is failed whose agent still has it")
  }
  if (event.type === "JobRetried" && "automatic" in event && event.automatic) {
    count(world, "a job was tried again by itself")
    const written = snapshotsOf(records.jobs.get(id)?.backup_id)
    law(world)(written.length === 0, "by itself a job is tried again that wrote no snapshot")
  }
}

const detailOf = (event: Message) => ("detail" in event ? event.detail : undefined)

const takers: Readonly<
  Record<string, (records: Records, law: Law, happened: Happened<never>) => void>
> = {
  job: takeJob,
  worker: takeWorker,
  lease: takeLease,
  backup: takeBackup,
  restore: takeRestore,
  target: takeTarget,
  policy: takePolicy,
  ledger: takeLedger,
  fleet: takeFleet,
  rollout: takeRollout,
}
