/**
 * Stores blobs: durably on this node first, then on other nodes before the response. A failed
 * replica does not fail the put; the repair makes it later. Erasure coded blobs go to
 * `erasure/put.ts`.
 *
 * Source: document 1 §1, §2 Replication policies; DECISIONS, document 1, placement of the receiver.
 */

import type { BlobUpload, PutOrder, PutResult } from "#actors/blob-storage/ports/engine.ts"
import { faultError, faultOf } from "#actors/blob-storage/ports/fault.ts"
import type { CopyOrder, HeldCopy } from "#actors/blob-storage/ports/node-engine.ts"
import type { CopyBytes, Members, Peer } from "#actors/blob-storage/ports/peers.ts"
import { owners_max } from "#placement"
import { type BlobId, hexOfBase64, type ReplicationPolicy } from "#schemas/blob-storage/blob.ts"
import { isErasureCode } from "#schemas/blob-storage/replication.ts"
import { admit } from "#volume"
import { metaOfShards } from "../erasure/get.ts"
import { ownersOf } from "../erasure/layout.ts"
import { type ErasurePut, putErasure } from "../erasure/put.ts"
import { readableCode, searchShards } from "../erasure/search.ts"
import { existingCopy, type NodeCopy, renewOn } from "../erasure/survey.ts"
import { erasureUploads } from "../erasure/upload.ts"
import { isPeerFailure } from "../peer-failure.ts"
import { type CopyFailure, type Failures, failureOn } from "./failures.ts"
import { type ClusterParts, idle_ms_max, isAlone, isSingle, receiversOf } from "./parts.ts"

type Parts = ReadonlyArray<Uint8Array>

/** Codes of a node that refuses the copy for now. This is not a failure, but no copy either. */
const refusals: ReadonlySet<string> = new Set(["FAILED_PRECONDITION", "ALREADY_EXISTS"])

const is_leaving = "This node is leaving the cluster: put to another node."
const too_few_shards = "Too few nodes with a shard of the blob responded."
const content_gone = "The stored copy of these bytes was removed during the put: retry the put."

const unreachable = (detail: string) => faultError({ _tag: "BlobUnreachable", detail })

const orderFor = ({ id, meta }: PutResult, { origin }: PutOrder, put_at: bigint): CopyOrder => ({
  id,
  origin,
  put_at,
  shard: undefined,
  checksum: hexOfBase64(meta.checksum),
  size: Number(meta.size),
  policy: meta.policy,
  labels: meta.labels,
  created_at: meta.created_at,
})

/** Whether the content was stored before with an erasure code, so that only a shard may be here. */
const isStoredAsShards = ({ created, meta }: PutResult, policy: ReplicationPolicy) =>
  !created && isErasureCode(meta.policy) && !isErasureCode(policy)

/** A put without an erasure code, after the local store has responded. */
interface ReplicatedPut {
  readonly order: PutOrder
  /** Undefined if only the local store has them. */
  readonly bytes: Parts | undefined
  readonly at: bigint
  /** Repeats the local put, if that is possible. */
  readonly retry: () => Promise<PutResult>
  /** Copies whose transfer started while this disk was still syncing. */
  readonly early?: () => Promise<CopyResults> | undefined
}

/** Results of the copies of a put, and the members at the time they were sent. */
interface CopyResults {
  readonly id: BlobId
  readonly members: Members
  readonly results: ReadonlyArray<CopyResult>
}

/** The result of one copy on another node. */
interface CopyResult {
  readonly node_id: string
  readonly is_durable: boolean
  readonly failed: ReadonlyArray<CopyFailure>
  /** A shard of the blob on that node prevents the copy. */
  readonly has_shard: boolean
}

const durable = { is_durable: true, failed: [], has_shard: false } as const

/** Renews the existing shards of a blob for this put. */
const makeRenewShards =
  (parts: ClusterParts) =>
  async ({ id, meta }: PutResult, put_at: bigint): Promise<ReadonlyArray<NodeCopy>> => {
    const nodes = ownersOf(parts.members(), id, owners_max)
    const renewed = await renewOn(parts, { id, size: Number(meta.size), put_at }, nodes)
    const shards = renewed.filter(({ copy }) => copy.kind === "shard")
    return existingCopy(shards) === undefined ? [] : shards
  }

/**
 * Gives way to existing shards: an earlier put of the same bytes used an erasure code, which a node
 * without a shard cannot know. Releases the copy that this put stored, and refuses the put or
 * responds as for existing content. Returns undefined if the shards do not make a blob; then the
 * shards are removed instead.
 */
const makeYieldToShards = (parts: ClusterParts) => {
  const { local } = parts
  const renewShards = makeRenewShards(parts)
  const release = async ({ id, meta }: PutResult, at: bigint) => {
    const [here] = await local.copiesOf([id])
    // A later put that was confirmed relies on it.
    if (here?.kind !== "whole" || here.put_at !== meta.created_at) return
    await local.release(id, here.stored_at, at)
  }
  return async (
    answer: PutResult,
    { order, at }: ReplicatedPut,
  ): Promise<PutResult | undefined> => {
    if (!answer.created) return undefined
    const { id } = answer
    const held = await renewShards(answer, answer.meta.created_at)
    if (held.length === 0) return undefined
    const meta = await metaOfShards(parts, held)
    await release(answer, at)
    const known = { policy: meta.policy, checksum: meta.checksum }
    const admission = admit({ ...order, id, checksum: meta.checksum }, known)
    if (admission.verdict === "exists") {
      throw faultError({ _tag: "BlobAlreadyExists", id, detail: admission.detail })
    }
    return { id, meta, created: false, durable_on: held.map(({ peer }) => peer.node_id) }
  }
}

/** The stored bytes, once they are no longer in memory. */
const stored = async ({ local }: ClusterParts, id: BlobId, at: bigint): Promise<CopyBytes> => {
  const { data, windows } = await local.read(id, {}, at)
  return data === undefined ? windows() : [data]
}

/** An existing copy may turn out to be corrupt while it is read for sending. */
const isHere = async ({ local }: ClusterParts, id: BlobId) => {
  const [here] = await local.copiesOf([id])
  return here !== undefined && here.kind !== "tombstone"
}

/** Sends the replicas of a blob that is stored here, and reports on which nodes it is durable. */
const makeReplicate = (parts: ClusterParts, failures: Failures) => {
  const { peers, members } = parts
  const yieldToShards = makeYieldToShards(parts)
  const sendTo = async (
    peer: Peer,
    order: CopyOrder,
    { bytes, at }: ReplicatedPut,
  ): Promise<CopyResult> => {
    const { node_id } = peer
    try {
      const content = bytes ?? (await stored(parts, order.id, at))
      await peers.send(peer, order, content, "put", idle_ms_max)
      return { ...durable, node_id }
    } catch (cause) {
      const code = isPeerFailure(cause) ? cause.code : undefined
      const is_refused = code !== undefined && refusals.has(code)
      const failed = is_refused ? [] : [failureOn(node_id, cause)]
      return { node_id, failed, is_durable: false, has_shard: code === "ALREADY_EXISTS" }
    }
  }
  const renewOrSend = async (peer: Peer, order: CopyOrder, put: ReplicatedPut, put_at: bigint) => {
    const [there] = await renewOn(parts, { ...order, put_at }, [peer])
    if (there?.copy.kind !== "whole") return sendTo(peer, order, put)
    return { ...durable, node_id: peer.node_id }
  }
  /**
   * `put_at` is the time of the put if its content existed before. Nodes with a copy renew it to
   * that time and need no bytes.
   */
  const send = async (
    answer: PutResult,
    put: ReplicatedPut,
    put_at?: bigint,
  ): Promise<CopyResults> => {
    const members_then = members()
    const receivers = receiversOf(members_then, answer.meta.policy, answer.id)
    const order = orderFor(answer, put.order, put_at ?? answer.meta.created_at)
    const sent = await Promise.all(
      receivers.map((peer) =>
        put_at === undefined ? sendTo(peer, order, put) : renewOrSend(peer, order, put, put_at),
      ),
    )
    return { id: answer.id, members: members_then, results: sent }
  }
  const replicate = async (
    answer: PutResult,
    put: ReplicatedPut,
    put_at?: bigint,
  ): Promise<PutResult> => {
    const early = put_at === undefined ? await put.early?.() : undefined
    const { members: members_then, results: sent } =
      early?.id === answer.id ? early : await send(answer, put, put_at)
    if (sent.length === 0) return answer
    const coded = sent.some(({ has_shard }) => has_shard) && (await yieldToShards(answer, put))
    if (coded) return coded
    const nodesWith = (wanted: boolean) =>
      sent.flatMap(({ node_id, is_durable }) => (is_durable === wanted ? [node_id] : []))
    failures.unreplicated(
      answer.id,
      nodesWith(false),
      sent.flatMap(({ failed }) => failed),
    )
    const others = nodesWith(true)
    if (others.length === sent.length || (await isHere(parts, answer.id))) {
      return { ...answer, durable_on: [members_then.node_id, ...others] }
    }
    if (others.length === 0) throw unreachable(content_gone)
    return { ...answer, durable_on: others }
  }
  return { replicate, send }
}

/**
 * A local shard proves that a put of its blob began, not that it finished. If the cluster has too
 * few of its shards, releases it, so that the put of a whole copy can be repeated.
 */
const makeOrphans = (parts: ClusterParts) => {
  const { local, members } = parts
  /** Returns whether such a shard was found and released. */
  return async (id: BlobId, { at, bytes }: ReplicatedPut) => {
    const [here] = await local.copiesOf([id])
    if (here?.kind !== "shard") return false
    const search = searchShards(parts, id, new Map())
    const is_readable = await search.runUntil((holders) => readableCode(holders) !== undefined)
    if (is_readable) return false
    // Without the bytes nothing replaces the shard, so no node may be offline.
    const is_whole = search.unanswered() === 0 && members().all_online_since !== undefined
    if (bytes === undefined && !is_whole) throw unreachable(too_few_shards)
    return local.release(id, here.stored_at, at)
  }
}

/**
 * Completes a put whose content was stored here before. A deletion between the two puts, which this
 * node has not received yet, must not remove the content that this put confirms; so the local copy
 * and the owners' copies are renewed to the time of this put.
 */
const makeRenewExisting = (
  parts: ClusterParts,
  { replicate }: Pick<ReturnType<typeof makeReplicate>, "replicate">,
) => {
  const renewShards = makeRenewShards(parts)
  return async (answer: PutResult, put: ReplicatedPut): Promise<PutResult> => {
    // The store verified the copy before it responded.
    const copy: HeldCopy | undefined = await parts.guard.renewVerified(answer.id, put.at, put.at)
    if (copy?.kind === "whole") return replicate(answer, put, copy.put_at)
    // The copy was deleted or found corrupt in the meantime.
    if (copy === undefined) return replicate(await put.retry(), put)
    const held = await renewShards(answer, copy.put_at)
    if (held.length === 0) throw unreachable(too_few_shards)
    return { ...answer, durable_on: held.map(({ peer }) => peer.node_id) }
  }
}

const existingOf = (cause: unknown) => {
  const fault = faultOf(cause)
  return fault._tag === "BlobAlreadyExists" ? fault.id : undefined
}

/** The steps of a put after its bytes are stored here, and the result of erasure coded puts. */
const makePutSteps = (parts: ClusterParts, failures: Failures) => {
  const { replicate, send } = makeReplicate(parts, failures)
  const releaseOrphan = makeOrphans(parts)
  const renewExisting = makeRenewExisting(parts, { replicate })
  return {
    send,
    /** Continues after the local store has responded. */
    onStored: async (answer: PutResult, put: ReplicatedPut) => {
      const is_shard = isStoredAsShards(answer, put.order.policy)
      const is_orphan = is_shard && (await releaseOrphan(answer.id, put))
      if (is_orphan) return replicate(await put.retry(), put)
      if (answer.created) return replicate(answer, put)
      return isSingle(parts) ? answer : renewExisting(answer, put)
    },
    /** Continues after the local store has refused. */
    onRefused: async (cause: unknown, put: ReplicatedPut) => {
      const id = existingOf(cause)
      if (id === undefined || !(await releaseOrphan(id, put))) throw cause
      return replicate(await put.retry(), put)
    },
    onCoded: ({ answer, stored_on, failed }: ErasurePut): PutResult => {
      const detail = "its shard was not stored"
      failures.unreplicated(
        answer.id,
        failed,
        failed.map((node_id) => ({ node_id, detail })),
      )
      return { ...answer, durable_on: stored_on }
    },
  }
}

type PutSteps = ReturnType<typeof makePutSteps>

/**
 * Sends the replicas while this disk syncs its own copy, and responds when all are durable: a small
 * put takes one sync instead of two. If this disk fails, the put fails; its replicas are then those
 * of a put without a confirmed outcome.
 */
const makePut = (parts: ClusterParts, { send, onStored, onRefused, onCoded }: PutSteps) => {
  const { local, members } = parts
  return (order: PutOrder, bytes: Parts, at: bigint): Promise<PutResult> => {
    if (isErasureCode(order.policy)) return putErasure(parts, order, bytes, at).then(onCoded)
    const again = () => local.put(order, bytes, at)
    let early: Promise<CopyResults> | undefined
    const put: ReplicatedPut = { order, bytes, at, retry: again, early: () => early }
    const placed = (answer: PutResult) => {
      if (!isAlone(members())) early = send(answer, put)
    }
    return local.put(order, bytes, at, placed).then(
      (answer) => (answer.created && isAlone(members()) ? answer : onStored(answer, put)),
      (cause: unknown) => onRefused(cause, put),
    )
  }
}

/**
 * Uploads. If the policy is an erasure code from the start, bytes are coded as they arrive. If a
 * later message sets it, the bytes are already staged on this disk and are coded from there.
 */
const makeUpload = (parts: ClusterParts, { onStored, onRefused, onCoded }: PutSteps) => {
  const { local } = parts
  const uploadCoded = erasureUploads(parts)
  const again = () => Promise.reject(unreachable(content_gone))

  return (order: PutOrder, size: number | undefined): BlobUpload => {
    if (isErasureCode(order.policy)) {
      const { write, finish, abort } = uploadCoded(order, size)
      return { write, finish: async (at) => onCoded(await finish(at)), abort }
    }
    const { write, finish, seal, abort } = local.upload(order, size)
    const finishWhole = (at: bigint) => {
      const put: ReplicatedPut = { order, bytes: undefined, at, retry: again }
      return finish(at).then(
        (answer) => onStored(answer, put),
        (cause: unknown) => onRefused(cause, put),
      )
    }
    const finishCoded = async (at: bigint) => {
      try {
        return onCoded(await putErasure(parts, order, await seal(), at))
      } finally {
        await abort()
      }
    }
    return {
      write,
      abort,
      finish: (at) => (isErasureCode(order.policy) ? finishCoded(at) : finishWhole(at)),
    }
  }
}

/**
 * Rejects puts while this node is leaving, and counts those in progress: content stored after the
 * last sweep of a leaving node would be lost with it.
 */
const makeGate = ({ members }: ClusterParts) => {
  let open = 0
  return {
    open: () => open,
    through: (run: () => Promise<PutResult>): Promise<PutResult> => {
      if (members().is_leaving) return Promise.reject(unreachable(is_leaving))
      open += 1
      const put = run()
      const end = () => {
        open -= 1
      }
      put.then(end, end)
      return put
    },
  }
}

export const makePuts = (parts: ClusterParts, failures: Failures) => {
  const ends = makePutSteps(parts, failures)
  const gate = makeGate(parts)
  const put = makePut(parts, ends)
  const upload = makeUpload(parts, ends)
  return {
    put: (order: PutOrder, bytes: Parts, at: bigint) => gate.through(() => put(order, bytes, at)),
    upload: (order: PutOrder, size: number | undefined): BlobUpload => {
      const { write, finish, abort } = upload(order, size)
      return { write, abort, finish: (at) => gate.through(() => finish(at)) }
    },
    /** Puts in progress. */
    open: gate.open,
  }
}
