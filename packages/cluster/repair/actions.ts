/**
 * Executes the actions of repair plans: sends copies, rebuilds shards, fetches copies, applies
 * deletions. Every action is bounded in time, and a failed one is planned again.
 *
 * Source: document 1 §1 InternalService Migrate, Replicate; decision 0125.
 */

import { faultOf } from "#actors/blob-storage/ports/fault.ts"
import type {
  CopyOrder,
  Deletion,
  HeldCopy,
  NodeEngine,
} from "#actors/blob-storage/ports/node-engine.ts"
import type { BlobOrigin } from "#actors/blob-storage/ports/origin.ts"
import type { Members, Peer, Peers, Reason } from "#actors/blob-storage/ports/peers.ts"
import type { BlobId } from "#schemas/blob-storage/blob.ts"
import { causeText } from "#schemas/cause-text.ts"
import { copyBytes } from "#volume"
import { stall_ms, verifyMs } from "../erasure/layout.ts"
import { isPeerFailure } from "../peer-failure.ts"
import type { RollbackGuard } from "../rollback.ts"
import type { Timing } from "../timing.ts"
import type { DiscardParts } from "./discard.ts"
import { type Pace, paced } from "./rate.ts"
import type { Action, Responses } from "./view.ts"

export interface RebuildOrder {
  readonly id: BlobId
  /** One or two; a target may be this node. */
  readonly missing: ReadonlyArray<{ readonly index: number; readonly peer: Peer }>
  /** The known copies, by node. */
  readonly known: ReadonlyMap<string, HeldCopy>
  readonly reason: Reason
  /** Limits the rate of reads and sends. */
  readonly pace: Pace
}

export interface Rebuilt {
  readonly rebuilt: ReadonlyArray<unknown>
  readonly failed: ReadonlyArray<{ readonly node_id: string; readonly cause: unknown }>
}

export interface RepairParts {
  readonly local: NodeEngine
  readonly guard: Pick<RollbackGuard, "releaseUnreported" | "renew">
  readonly peers: Peers
  readonly members: () => Members
  readonly isCurrent: DiscardParts["isCurrent"]
  readonly timing: Timing
  /** `rebuildShards` of `erasure/rebuild.ts`. */
  readonly rebuild: (order: RebuildOrder) => Promise<Rebuilt>
}

/** Counters since startup. */
export interface RepairTally {
  bytes_moved: number
  repairs: number
  failures: number
  /** The text of the last failure. */
  cause: string
}

/** A blob, and the copy that each node reported. */
export interface BlobSurvey {
  readonly id: BlobId
  /** The local copy, if any. */
  readonly copy: HeldCopy | undefined
  readonly responses: Responses
  /** When the survey began, in Unix nanoseconds. */
  readonly surveyed_at: bigint
}

/** The number of copies made, and whether everything that was tried succeeded. */
export interface Outcome {
  readonly succeeded: number
  readonly is_done: boolean
}

const nothing_to_do: Outcome = { succeeded: 0, is_done: true }
const failed: Outcome = { succeeded: 0, is_done: false }
const made = (copies: number): Outcome => ({ succeeded: copies, is_done: true })

/**
 * Whether the failure means that the copy exists or is no longer wanted. Both settle the action.
 */
const isSettled = (cause: unknown) =>
  isPeerFailure(cause)
    ? cause.code === "ALREADY_EXISTS"
    : ["BlobNotFound", "BlobDeletedHere", "BlobAlreadyExists"].includes(faultOf(cause)._tag)

export const originOf = (node_id: string): BlobOrigin => ({
  actor: `process:repair-${node_id}`,
  request_id: "",
  correlation_id: "",
})

/** The reported copies by node, without deletions. */
const heldIn = (responses: Responses) => {
  const held = new Map<string, HeldCopy>()
  for (const [node_id, copy] of responses) {
    if (copy !== undefined && copy.kind !== "tombstone") held.set(node_id, copy)
  }
  return held
}

type PushAction = Action & { readonly kind: "push" }

/** Sends the local copy. If it was replaced in the meantime, the next plan decides. */
const makePush = (parts: RepairParts, pace: Pace, tally: RepairTally) =>
  async function push(copy: HeldCopy, peer: Peer, action: PushAction): Promise<Outcome> {
    const reason = action.is_migration ? "migrate" : "repair"
    const { local, peers, members, timing } = parts
    const reading = await local.read(copy.id, {}, timing.now())
    if (reading.copy.stored_at !== copy.stored_at) return nothing_to_do
    const { id, checksum, size, policy, created_at, put_at, shard } = reading.copy
    const { labels } = reading.meta
    const origin = originOf(members().node_id)
    const what = { id, checksum, size, policy, shard }
    const order: CopyOrder = { ...what, labels, created_at, put_at, origin }
    const bytes = paced(reading.data === undefined ? reading.windows() : [reading.data], pace)
    try {
      const { created } = await peers.send(peer, order, bytes, reason, stall_ms)
      if (!created) return made(1)
    } finally {
      await bytes.return(undefined)
    }
    tally.bytes_moved += copyBytes(size, shard)
    if (reason === "repair") tally.repairs += 1
    return made(1)
  }

/** Fetches a copy that belongs on this node. */
const makePull = (parts: RepairParts, pace: Pace, tally: RepairTally) =>
  async function pull(id: BlobId, peer: Peer): Promise<Outcome> {
    const { local, peers, members, timing } = parts
    const { copy, meta, bytes } = await peers.fetch(peer, id, {}, stall_ms)
    try {
      if (copy.kind !== "whole") return failed
      const { checksum, size, policy, created_at, put_at } = copy
      const times = { created_at, put_at }
      const origin = originOf(members().node_id)
      const order = { id, checksum, size, policy, ...times, labels: meta.labels, origin }
      const receiving = local.receive({ ...order, shard: undefined }, size)
      try {
        for await (const part of paced(bytes, pace)) await receiving.write(part)
        const { created } = await receiving.finish(timing.now())
        if (created) tally.repairs += 1
        return made(1)
      } finally {
        await receiving.abort()
      }
    } finally {
      await bytes.return?.()
    }
  }

/** Renews a copy to a later put. If it was removed in the meantime, the next plan decides. */
const makeRenewal = ({ guard, peers, members, timing }: RepairParts, pace: Pace) =>
  async function renew(
    { id, responses }: BlobSurvey,
    { node_id, put_at }: Action & { kind: "renew" },
  ): Promise<Outcome> {
    const { node_id: own_id, active, leaving } = members()
    const peer = [...active, ...leaving].find((one) => one.node_id === node_id)
    const held = heldIn(responses).get(node_id)
    if (held === undefined || (node_id !== own_id && peer === undefined)) return failed
    // The node verifies its copy first.
    await pace(copyBytes(held.size, held.shard))
    const copy =
      node_id === own_id || peer === undefined
        ? await guard.renew(id, put_at, timing.now())
        : await peers.renew(peer, id, put_at, verifyMs(held.size))
    return copy === undefined ? failed : made(1)
  }

/** Turns a failure into an outcome, and counts it unless it settles the action. */
const makeFail = (tally: RepairTally) =>
  function fail(cause: unknown): Outcome {
    // The blob was deleted on that node after the survey; the next plan chooses another node.
    if (isPeerFailure(cause) && cause.code === "FAILED_PRECONDITION") return failed
    if (isSettled(cause)) return made(1)
    tally.failures += 1
    tally.cause = causeText(cause)
    return failed
  }

type Fail = ReturnType<typeof makeFail>

const activePeer = ({ active }: Members, node_id: string) =>
  active.find((peer) => peer.node_id === node_id)

/** Fetches a copy from the first node that sends it. */
const makePulls = (parts: RepairParts, pace: Pace, tally: RepairTally, fail: Fail) => {
  const pull = makePull(parts, pace, tally)
  return async function pullFrom(id: BlobId, from: ReadonlyArray<string>) {
    let outcome = failed
    for (const node_id of from) {
      const { active, leaving, is_leaving } = parts.members()
      const peer = [...active, ...leaving].find((one) => one.node_id === node_id)
      if (peer === undefined || is_leaving) continue
      outcome = await pull(id, peer).catch((cause: unknown) => fail(cause))
      if (outcome.succeeded > 0) return outcome
    }
    return outcome
  }
}

const makeRebuilds = (parts: RepairParts, pace: Pace, tally: RepairTally, fail: Fail) =>
  async function rebuildAll(
    { id, responses }: BlobSurvey,
    { missing }: Action & { kind: "rebuild" },
  ): Promise<Outcome> {
    const wanted = missing.flatMap(({ index, node_id }) => {
      const peer = activePeer(parts.members(), node_id)
      return peer === undefined ? [] : [{ index, peer }]
    })
    if (wanted.length === 0) return failed
    const known = heldIn(responses)
    const done = await parts.rebuild({ id, missing: wanted, known, reason: "repair", pace })
    for (const { cause } of done.failed) fail(cause)
    tally.repairs += done.rebuilt.length
    return { succeeded: done.rebuilt.length, is_done: done.failed.length === 0 }
  }

export const makeActions = (parts: RepairParts, pace: Pace, tally: RepairTally) => {
  const { local, guard, peers, members } = parts
  const fail = makeFail(tally)
  const push = makePush(parts, pace, tally)
  const pullFrom = makePulls(parts, pace, tally, fail)
  const rebuildAll = makeRebuilds(parts, pace, tally, fail)
  const renew = makeRenewal(parts, pace)

  const start = async (action: Action, survey: BlobSurvey): Promise<Outcome> => {
    const { id, copy, surveyed_at } = survey
    if (action.kind === "rebuild") return rebuildAll(survey, action)
    if (action.kind === "pull") return pullFrom(id, action.from)
    if (action.kind === "renew") return renew(survey, action)
    if (action.kind === "discard") {
      await guard.releaseUnreported(id, action.stored_at, surveyed_at)
      return nothing_to_do
    }
    if (action.kind === "delete") {
      await local.deleteClusterWide(id, originOf(members().node_id), action.deleted_at)
      return nothing_to_do
    }
    const peer = action.kind === "push" ? activePeer(members(), action.to) : undefined
    if (action.kind !== "push" || copy === undefined || peer === undefined) return nothing_to_do
    return push(copy, peer, action).catch(fail)
  }
  return {
    /** Runs any action except a release, which is done for many blobs at once. */
    run: (action: Action, survey: BlobSurvey) =>
      start(action, survey).catch((cause: unknown) => fail(cause)),
    /** Sends deletions to a node that does not know them. */
    sendDeletions: async (peer: Peer, deletions: ReadonlyArray<Deletion>) => {
      for (const { id, deleted_at } of deletions) {
        const origin = originOf(members().node_id)
        const sent = peers.deleteClusterWide(peer, id, origin, deleted_at).then(() => nothing_to_do)
        if (!(await sent.catch((cause: unknown) => fail(cause))).is_done) return false
      }
      return true
    },
  }
}

export type Actions = ReturnType<typeof makeActions>
