/**
 * A volume: the recorded part of a node's journal, the blobs that the node holds according to it,
 * and whether enough nodes exist for their policies.
 *
 * Source: DESIGN of the running system, "The exception: bytes"; DECISIONS, document 1, replica
 * count not reachable.
 */
import { Effect, Struct } from "effect"
import { assign, type SnapshotFrom, setup } from "xstate"
import { decider } from "#actors/decider.ts"
import { stateAfter } from "#actors/host.ts"
import {
  BlobDeleted,
  type BlobEvent,
  BlobLost,
  BlobQuarantined,
  BlobReleased,
  BlobStored,
  changeOf,
  ReplicationShortfallEnded,
  ReplicationShortfallStarted,
  VolumeEvent,
} from "#events/blob-storage/volume.ts"
import type { Log, Recorded } from "#events/log.ts"
import { type ReplicationPolicy, storedPolicy } from "#schemas/blob-storage/blob.ts"
import { nodes_needed } from "#schemas/blob-storage/replication.ts"
import {
  FactsOutOfOrder,
  type RecordShortfall,
  VolumeCommand,
  type VolumeFact,
} from "#schemas/blob-storage/volume.ts"

/** The number of blobs with each policy; a policy without blobs is absent. */
type PolicyCounts = Readonly<Partial<Record<ReplicationPolicy, number>>>

/** The number of these blobs whose policy needs more nodes than are active. */
export const underReplicated = (blobs: PolicyCounts, active_nodes: number) =>
  Object.entries(blobs).reduce((sum, [policy, count]) => {
    // The keys of PolicyCounts are policies.
    const needed = nodes_needed[storedPolicy(policy as ReplicationPolicy)]
    return needed > active_nodes ? sum + count : sum
  }, 0)

/** Whether a shortfall begins or ends; undefined while nothing changes. */
export const shortfallChange = (was_short: boolean, under_replicated: number) => {
  const is_short = under_replicated > 0
  if (is_short === was_short) return undefined
  return is_short ? "began" : "ended"
}

export interface VolumeContext {
  /** The cursor of the last recorded fact. */
  readonly cursor: number
  /** Identifies that fact; null before the first. */
  readonly last: Pick<BlobEvent, "id" | "at"> | null
  readonly blobs: number
  readonly bytes: number
  readonly policies: PolicyCounts
  /** Whether a shortfall has begun and not ended. */
  readonly is_short: boolean
}

type Context = VolumeContext

const isBlob = (event: VolumeEvent): event is BlobEvent => "cursor" in event

const counted = (policies: PolicyCounts, event: BlobEvent): PolicyCounts => {
  const policy = storedPolicy(event.policy)
  const count = Math.max(0, (policies[policy] ?? 0) + changeOf(event).blobs)
  return count === 0 ? Struct.omit(policies, [policy]) : { ...policies, [policy]: count }
}

/**
 * If a record is damaged at both ends, the size and policy of its blob are unknown, and its fact
 * may be missing from the journal. The counts are then estimates, and never negative. Such facts
 * must not be rejected, or the journal would never continue.
 */
const afterFact = (context: Context, event: VolumeEvent): Context => {
  if (!isBlob(event)) return context
  const { cursor, id, at } = event
  const { blobs, bytes } = changeOf(event)
  return {
    cursor,
    last: { id, at },
    blobs: Math.max(0, context.blobs + blobs),
    bytes: Math.max(0, context.bytes + bytes),
    policies: counted(context.policies, event),
    is_short: context.is_short,
  }
}

const follows = (context: Context, event: VolumeEvent) =>
  isBlob(event) && event.after === context.cursor && event.cursor > context.cursor

/** Facts arrive by the hundreds, so this applies their only guard and action without the chart. */
const foldContext = (context: Context, events: ReadonlyArray<VolumeEvent>) => {
  let after = context
  for (const event of events) {
    if (!follows(after, event)) return undefined
    after = afterFact(after, event)
  }
  return after
}

const chart = setup({
  types: { context: {} as Context, events: {} as VolumeEvent },
  guards: {
    follows: ({ context, event }) => follows(context, event),
    is_short: ({ context }) => context.is_short,
    is_not_short: ({ context }) => !context.is_short,
  },
  actions: {
    count: assign(({ context, event }) => afterFact(context, event)),
    begin_shortfall: assign({ is_short: true }),
    end_shortfall: assign({ is_short: false }),
  },
})

const counting = { guard: "follows", actions: "count" } as const

export const machine = chart.createMachine({
  id: "blob-storage.volume",
  context: { cursor: 0, last: null, blobs: 0, bytes: 0, policies: {}, is_short: false },
  initial: "open",
  states: {
    open: {
      on: {
        BlobStored: counting,
        BlobDeleted: counting,
        BlobQuarantined: counting,
        BlobLost: counting,
        BlobReleased: counting,
        ReplicationShortfallStarted: { guard: "is_not_short", actions: "begin_shortfall" },
        ReplicationShortfallEnded: { guard: "is_short", actions: "end_shortfall" },
      },
    },
  },
})

/** The event for a fact, with its fields in schema order. */
const eventOf = (after: number, fact: VolumeFact): VolumeEvent => {
  const { cursor, kind, id, size, checksum, policy, shard, labels } = fact
  const { at, actor, request_id, correlation_id } = fact
  const part = shard === undefined ? {} : { shard }
  const of = { after, cursor, id, size, checksum, policy, ...part }
  const by = { at, actor, request_id, correlation_id }
  if (kind === "stored") {
    return BlobStored.make({ type: "BlobStored", ...of, ...by, ...(labels && { labels }) })
  }
  if (kind === "deleted") return BlobDeleted.make({ type: "BlobDeleted", ...of, ...by })
  if (kind === "released") return BlobReleased.make({ type: "BlobReleased", ...of, ...by })
  if (kind === "lost") return BlobLost.make({ type: "BlobLost", ...of, ...by })
  return BlobQuarantined.make({ type: "BlobQuarantined", ...of, ...by })
}

const recordShortfall = (
  { active_nodes, under_replicated: lacking_copies = 0 }: typeof RecordShortfall.Type,
  { policies, is_short }: Context,
) => {
  const under_replicated = Math.max(lacking_copies, underReplicated(policies, active_nodes))
  const change = shortfallChange(is_short, under_replicated)
  if (change === undefined) return []
  const counts = { active_nodes, under_replicated }
  return change === "began"
    ? [ReplicationShortfallStarted.make(counts)]
    : [ReplicationShortfallEnded.make(counts)]
}

const reject = ({ context }: SnapshotFrom<typeof machine>, command: VolumeCommand) => {
  // RecordShortfall proposals read the same context as the chart's guards.
  if (command.type !== "RecordFacts") throw new Error(`${command.type} is never rejected`)
  const { from, to } = command
  return new FactsOutOfOrder({
    detail: `Facts after ${from} to ${to} do not follow cursor ${context.cursor}.`,
  })
}

/**
 * Version 1 snapshots did not count policies, so they cannot be upcast: the history is folded until
 * the volume's next commit.
 */
export const Volume = decider({
  machine,
  version: 2,
  command: VolumeCommand,
  event: VolumeEvent,
  rejection: FactsOutOfOrder,
  propose: {
    RecordFacts: ({ from, facts }) =>
      facts.map((fact, i) => eventOf(facts[i - 1]?.cursor ?? from, fact)),
    RecordShortfall: recordShortfall,
  },
  reject,
  foldContext,
})

/** The volume after one of its commits. */
export const volumeAfter = (log: Log["Service"], recorded: Recorded) =>
  Effect.map(
    stateAfter(log, Volume, recorded),
    // The decider's state is a snapshot of this file's machine.
    (state) => state.context as VolumeContext,
  )
