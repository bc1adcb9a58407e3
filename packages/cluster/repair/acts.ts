/**
 * What a plan says, done: copies sent, shards made, copies fetched, deletions carried out. Nothing
 * of it waits for ever, and whatever fails is planned again.
 *
 * Source: document 1 §1 InternalService Migrate, Replicate; decision 0125.
 */

import type { BlobOrigin } from "#actors/blob-storage/blobs/admission.ts"
import { faultOf } from "#actors/blob-storage/blobs/fault.ts"
import type { CopyOrder, Deletion, HeldCopy, NodeEngine } from "#actors/blob-storage/node-engine.ts"
import type { Members, Peer, Peers, Reason } from "#actors/blob-storage/peers.ts"
import type { BlobId } from "#schemas/blob-storage/blob.ts"
import { causeText } from "#schemas/cause-text.ts"
import { copyBytes } from "#volume"
import { readingMs, stall_ms } from "../erasure/layout.ts"
import { isPeerFailure } from "../peer-failure.ts"
import type { TakeBackGuard } from "../take-back.ts"
import type { Timing } from "../timing.ts"
import type { ForsakeParts } from "./forsake.ts"
import { type Pace, paced } from "./rate.ts"
import type { Act, Answers } from "./view.ts"

export interface RebuildOrder {
  readonly id: BlobId
  /** One or two, also for this node. */
  readonly missing: ReadonlyArray<{ readonly index: number; readonly peer: Peer }>
  /** What each node has of the blob. */
  readonly known: ReadonlyMap<string, HeldCopy>
  readonly reason: Reason
  /** Asked before bytes are read and sent. */
  readonly pace: Pace
}

export interface Rebuilt {
  readonly rebuilt: ReadonlyArray<unknown>
  readonly failed: ReadonlyArray<{ readonly node_id: string; readonly cause: unknown }>
}

export interface RepairParts {
  readonly local: NodeEngine
  readonly guard: Pick<TakeBackGuard, "releaseUntold" | "renew">
  readonly peers: Peers
  readonly members: () => Members
  readonly isCurrent: ForsakeParts["isCurrent"]
  readonly timing: Timing
  /** `rebuildShards` of erasure-rebuild.ts. */
  readonly rebuild: (order: RebuildOrder) => Promise<Rebuilt>
}

/** Counts of this process. */
export interface RepairTally {
  bytes_moved: number
  repairs: number
  failures: number
  /** What the last failure said. */
  cause: string
}

/** One blob, and what everybody said of it. */
export interface Matter {
  readonly id: BlobId
  /** What is here, where anything is. */
  readonly copy: HeldCopy | undefined
  readonly answers: Answers
  /** When the asking began, in Unix nanoseconds. */
  readonly asked_at: bigint
}

/** Copies made, and whether all that was tried could be done. */
export interface Outcome {
  readonly made: number
  readonly is_done: boolean
}

const moot: Outcome = { made: 0, is_done: true }
const undone: Outcome = { made: 0, is_done: false }
const made = (copies: number): Outcome => ({ made: copies, is_done: true })

/** What is to be there is there, or not wanted: another answer than planned, and one. */
const isSettled = (cause: unknown) =>
  isPeerFailure(cause)
    ? cause.code === "ALREADY_EXISTS"
    : ["BlobNotFound", "BlobDeletedHere", "BlobAlreadyExists"].includes(faultOf(cause)._tag)

export const originOf = (node_id: string): BlobOrigin => ({
  actor: `node:${node_id}`,
  request_id: "",
  correlation_id: "",
})

/** What a node has of each blob of an answer, without deletions. */
const heldIn = (answers: Answers) => {
  const held = new Map<string, HeldCopy>()
  for (const [node_id, copy] of answers) {
    if (copy !== undefined && copy.kind !== "tombstone") held.set(node_id, copy)
  }
  return held
}

type PushAct = Act & { readonly act: "push" }

/** Sends what is here. Where something else is here by now, it is left to the next plan. */
const makePush = (parts: RepairParts, pace: Pace, tally: RepairTally) =>
  async function push(copy: HeldCopy, peer: Peer, act: PushAct): Promise<Outcome> {
    const reason = act.is_migration ? "migrate" : "repair"
    const { local, peers, members, timing } = parts
    const reading = await local.read(copy.id, {}, timing.now())
    if (reading.copy.stored_at !== copy.stored_at) return moot
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

/** Gets a copy that is to be here. */
const makePull = (parts: RepairParts, pace: Pace, tally: RepairTally) =>
  async function pull(id: BlobId, peer: Peer): Promise<Outcome> {
    const { local, peers, members, timing } = parts
    const { copy, meta, bytes } = await peers.fetch(peer, id, {}, stall_ms)
    try {
      if (copy.kind !== "whole") return undone
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

/** Has a copy take over a later put's time; where it is gone by now, another plan is made. */
const makeRenewal = ({ guard, peers, members, timing }: RepairParts, pace: Pace) =>
  async function renew(
    { id, answers }: Matter,
    { node_id, put_at }: Act & { act: "renew" },
  ): Promise<Outcome> {
    const { node_id: own_id, active, leaving } = members()
    const peer = [...active, ...leaving].find((one) => one.node_id === node_id)
    const held = heldIn(answers).get(node_id)
    if (held === undefined || (node_id !== own_id && peer === undefined)) return undone
    // It is read first, wherever it is.
    await pace(copyBytes(held.size, held.shard))
    const copy =
      node_id === own_id || peer === undefined
        ? await guard.renew(id, put_at, timing.now())
        : await peers.renew(peer, id, put_at, readingMs(held.size))
    return copy === undefined ? undone : made(1)
  }

/** Counts what could not be done, and what came out otherwise: each thing is one of the two. */
const makeFailing = (tally: RepairTally) =>
  function fail(cause: unknown): Outcome {
    // Deleted there since it was asked: somebody else is to have it, by the next plan.
    if (isPeerFailure(cause) && cause.code === "FAILED_PRECONDITION") return undone
    if (isSettled(cause)) return made(1)
    tally.failures += 1
    tally.cause = causeText(cause)
    return undone
  }

type Fail = ReturnType<typeof makeFailing>

const activePeer = ({ active }: Members, node_id: string) =>
  active.find((peer) => peer.node_id === node_id)

/** Gets a copy from the first that gives it. */
const makePulls = (parts: RepairParts, pace: Pace, tally: RepairTally, fail: Fail) => {
  const pull = makePull(parts, pace, tally)
  return async function pullFrom(id: BlobId, from: ReadonlyArray<string>) {
    let outcome = undone
    for (const node_id of from) {
      const { active, leaving, is_leaving } = parts.members()
      const peer = [...active, ...leaving].find((one) => one.node_id === node_id)
      if (peer === undefined || is_leaving) continue
      outcome = await pull(id, peer).catch((cause: unknown) => fail(cause))
      if (outcome.made > 0) return outcome
    }
    return outcome
  }
}

const makeRebuilds = (parts: RepairParts, pace: Pace, tally: RepairTally, fail: Fail) =>
  async function rebuildAll(
    { id, answers }: Matter,
    { missing }: Act & { act: "rebuild" },
  ): Promise<Outcome> {
    const wanted = missing.flatMap(({ index, node_id }) => {
      const peer = activePeer(parts.members(), node_id)
      return peer === undefined ? [] : [{ index, peer }]
    })
    if (wanted.length === 0) return undone
    const known = heldIn(answers)
    const done = await parts.rebuild({ id, missing: wanted, known, reason: "repair", pace })
    for (const { cause } of done.failed) fail(cause)
    tally.repairs += done.rebuilt.length
    return { made: done.rebuilt.length, is_done: done.failed.length === 0 }
  }

export const makeActs = (parts: RepairParts, pace: Pace, tally: RepairTally) => {
  const { local, guard, peers, members } = parts
  const fail = makeFailing(tally)
  const push = makePush(parts, pace, tally)
  const pullFrom = makePulls(parts, pace, tally, fail)
  const rebuildAll = makeRebuilds(parts, pace, tally, fail)
  const renew = makeRenewal(parts, pace)

  const begin = async (act: Act, matter: Matter): Promise<Outcome> => {
    const { id, copy, asked_at } = matter
    if (act.act === "rebuild") return rebuildAll(matter, act)
    if (act.act === "pull") return pullFrom(id, act.from)
    if (act.act === "renew") return renew(matter, act)
    if (act.act === "forsake") {
      await guard.releaseUntold(id, act.stored_at, asked_at)
      return moot
    }
    if (act.act === "delete") {
      await local.deleteClusterWide(id, originOf(members().node_id), act.deleted_at)
      return moot
    }
    const peer = act.act === "push" ? activePeer(members(), act.to) : undefined
    if (act.act !== "push" || copy === undefined || peer === undefined) return moot
    return push(copy, peer, act).catch(fail)
  }
  return {
    /** Everything but a release, which is done for many at once; what is forsaken may go. */
    act: (act: Act, matter: Matter) => begin(act, matter).catch((cause: unknown) => fail(cause)),
    /** Tells a node of deletions; it was asked what it knows of them. */
    tell: async (peer: Peer, deletions: ReadonlyArray<Deletion>) => {
      for (const { id, deleted_at } of deletions) {
        const origin = originOf(members().node_id)
        const told = peers.deleteClusterWide(peer, id, origin, deleted_at).then(() => moot)
        if (!(await told.catch((cause: unknown) => fail(cause))).is_done) return false
      }
      return true
    },
  }
}

export type Acts = ReturnType<typeof makeActs>
