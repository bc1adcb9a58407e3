/**
 * Puts in a cluster: durable here first, then tried on the other nodes before the answer. A copy
 * that cannot be made fails nothing, it is hinted at and made later. An erasure code goes its way.
 *
 * Source: document 1 §1, §2 Replication policies; DECISIONS, document 1, placement of the receiver.
 */

import { admit } from "#actors/blob-storage/blobs/admission.ts"
import type { BlobUpload, PutAnswer, PutOrder } from "#actors/blob-storage/blobs/engine.ts"
import { faultOf, thrown } from "#actors/blob-storage/blobs/fault.ts"
import type { CopyOrder, HeldCopy } from "#actors/blob-storage/node-engine.ts"
import type { CopyBytes, Members, Peer } from "#actors/blob-storage/peers.ts"
import { owners_max } from "#actors/blob-storage/placement.ts"
import { isErasureCode } from "#actors/blob-storage/replication.ts"
import { type BlobId, hexOfBase64, type ReplicationPolicy } from "#schemas/blob-storage/blob.ts"
import { metaOfShards } from "../erasure/get.ts"
import { ownersOf } from "../erasure/layout.ts"
import { type ErasurePut, putErasure } from "../erasure/put.ts"
import { readableCode, searchShards } from "../erasure/search.ts"
import { type HeldBy, presentIn, renewOn } from "../erasure/survey.ts"
import { erasureUploads } from "../erasure/upload.ts"
import { isPeerFailure } from "../peer-failure.ts"
import { type Failed, type Failures, failedOn } from "./failures.ts"
import { type ClusterParts, isAlone, isSingle, receiversOf, silence_ms_max } from "./parts.ts"

type Parts = ReadonlyArray<Uint8Array>

/** What a node answers that will not have the copy now: no failure of its own, and no copy. */
const refusals: ReadonlySet<string> = new Set(["FAILED_PRECONDITION", "ALREADY_EXISTS"])

const is_leaving = "This node is leaving the cluster: put to another."
const too_few_shards = "Too few shards of the blob answer."
const in_the_way = "What was stored of these bytes went away meanwhile: put them again."

const unreachable = (detail: string) => thrown({ _tag: "BlobUnreachable", detail })

const orderFor = ({ id, meta }: PutAnswer, { origin }: PutOrder, put_at: bigint): CopyOrder => ({
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

/** Whether a put found its content stored already, and of that only a shard may be here. */
const isKeptAsShard = ({ created, meta }: PutAnswer, policy: ReplicationPolicy) =>
  !created && isErasureCode(meta.policy) && !isErasureCode(policy)

/** A put without an erasure code, as it goes on once the store has answered. */
interface Whole {
  readonly order: PutOrder
  /** Undefined where they are in the store and nowhere else. */
  readonly bytes: Parts | undefined
  readonly at: bigint
  /** Makes the put in the store once more, where that is possible. */
  readonly again: () => Promise<PutAnswer>
  /** Copies that are on their way since this disk has its own: those of this answer. */
  readonly early?: () => Promise<Sending> | undefined
}

/** What came of the copies of a put, by the members of when they were sent. */
interface Sending {
  readonly id: BlobId
  readonly by: Members
  readonly sent: ReadonlyArray<Sent>
}

/** What came of a copy that another node was to have. */
interface Sent {
  readonly node_id: string
  readonly is_durable: boolean
  readonly failed: ReadonlyArray<Failed>
  /** A shard of the blob is in the way there. */
  readonly has_shard: boolean
}

const durable = { is_durable: true, failed: [], has_shard: false } as const

/** A put that found a blob's shards: they are of this put too from now on. */
const makeRenewShards =
  (parts: ClusterParts) =>
  async ({ id, meta }: PutAnswer, put_at: bigint): Promise<ReadonlyArray<HeldBy>> => {
    const nodes = ownersOf(parts.members(), id, owners_max)
    const renewed = await renewOn(parts, { id, size: Number(meta.size), put_at }, nodes)
    const shards = renewed.filter(({ copy }) => copy.kind === "shard")
    return presentIn(shards) === undefined ? [] : shards
  }

/**
 * Others have shards of what was stored here as one whole: a put before had an erasure code, which
 * a node without a shard cannot know. What this put stored here is let go, and it is refused or
 * answered as a repetition. Undefined where the shards make no blob: then they are what goes.
 */
const makeMakeWay = (parts: ClusterParts) => {
  const { local } = parts
  const renewShards = makeRenewShards(parts)
  const letGo = async ({ id, meta }: PutAnswer, at: bigint) => {
    const [here] = await local.copiesOf([id])
    // A later put that was answered relies on it.
    if (here?.kind !== "whole" || here.put_at !== meta.created_at) return
    await local.release(id, here.stored_at, at)
  }
  return async (answer: PutAnswer, { order, at }: Whole): Promise<PutAnswer | undefined> => {
    if (!answer.created) return undefined
    const { id } = answer
    const held = await renewShards(answer, answer.meta.created_at)
    if (held.length === 0) return undefined
    const meta = await metaOfShards(parts, held)
    await letGo(answer, at)
    const known = { policy: meta.policy, checksum: meta.checksum }
    const admission = admit({ ...order, id, checksum: meta.checksum }, known)
    if (admission.verdict === "exists") {
      throw thrown({ _tag: "BlobAlreadyExists", id, detail: admission.detail })
    }
    return { id, meta, created: false, durable_on: held.map(({ peer }) => peer.node_id) }
  }
}

/** Sends the copies of a blob that is stored here; answers with where it is durable. */
const makeReplicate = (parts: ClusterParts, failures: Failures) => {
  const { local, peers, members } = parts
  const makeWay = makeMakeWay(parts)
  /** The bytes as they lie here, where they are not in memory any more. */
  const stored = async (id: BlobId, at: bigint): Promise<CopyBytes> => {
    const { data, windows } = await local.read(id, {}, at)
    return data === undefined ? windows() : [data]
  }
  /** Bytes that a put found here, and that are read to be sent, may turn out to be corrupt. */
  const isHere = async (id: BlobId) => {
    const [here] = await local.copiesOf([id])
    return here !== undefined && here.kind !== "tombstone"
  }
  const sendTo = async (peer: Peer, order: CopyOrder, { bytes, at }: Whole): Promise<Sent> => {
    const { node_id } = peer
    try {
      await peers.send(peer, order, bytes ?? (await stored(order.id, at)), "put", silence_ms_max)
      return { ...durable, node_id }
    } catch (cause) {
      const code = isPeerFailure(cause) ? cause.code : undefined
      const is_refused = code !== undefined && refusals.has(code)
      const failed = is_refused ? [] : [failedOn(node_id, cause)]
      return { node_id, failed, is_durable: false, has_shard: code === "ALREADY_EXISTS" }
    }
  }
  const renewAt = async (peer: Peer, order: CopyOrder, put: Whole, put_at: bigint) => {
    const [there] = await renewOn(parts, { ...order, put_at }, [peer])
    if (there?.copy.kind !== "whole") return sendTo(peer, order, put)
    return { ...durable, node_id: peer.node_id }
  }
  /**
   * `put_at` is the put's time where its content was stored before: who has a copy takes that over,
   * and needs no bytes.
   */
  const send = async (answer: PutAnswer, put: Whole, put_at?: bigint): Promise<Sending> => {
    const by = members()
    const receivers = receiversOf(by, answer.meta.policy, answer.id)
    const order = orderFor(answer, put.order, put_at ?? answer.meta.created_at)
    const sent = await Promise.all(
      receivers.map((peer) =>
        put_at === undefined ? sendTo(peer, order, put) : renewAt(peer, order, put, put_at),
      ),
    )
    return { id: answer.id, by, sent }
  }
  const replicate = async (answer: PutAnswer, put: Whole, put_at?: bigint): Promise<PutAnswer> => {
    const early = put_at === undefined ? await put.early?.() : undefined
    const { by, sent } = early?.id === answer.id ? early : await send(answer, put, put_at)
    if (sent.length === 0) return answer
    const coded = sent.some(({ has_shard }) => has_shard) && (await makeWay(answer, put))
    if (coded) return coded
    const nodesWith = (wanted: boolean) =>
      sent.flatMap(({ node_id, is_durable }) => (is_durable === wanted ? [node_id] : []))
    failures.unreplicated(
      answer.id,
      nodesWith(false),
      sent.flatMap(({ failed }) => failed),
    )
    const others = nodesWith(true)
    if (others.length === sent.length || (await isHere(answer.id))) {
      return { ...answer, durable_on: [by.node_id, ...others] }
    }
    if (others.length === 0) throw unreachable(in_the_way)
    return { ...answer, durable_on: others }
  }
  return { replicate, send }
}

/**
 * A shard here says that a put of its blob began, not that it came to an end. Where the cluster
 * has too few of its shards it is let go, and the put of a whole copy that met it is made again.
 */
const makeOrphans = (parts: ClusterParts) => {
  const { local, members } = parts
  /** Whether there was such a shard, which is gone now. */
  return async (id: BlobId, { at, bytes }: Whole) => {
    const [here] = await local.copiesOf([id])
    if (here?.kind !== "shard") return false
    const search = searchShards(parts, id, new Map())
    const is_readable = await search.until((holders) => readableCode(holders) !== undefined)
    if (is_readable) return false
    // Nothing takes its place where the bytes are not at hand: then nobody may be away.
    const is_whole = search.unanswered() === 0 && members().whole_since !== undefined
    if (bytes === undefined && !is_whole) throw unreachable(too_few_shards)
    return local.release(id, here.stored_at, at)
  }
}

/**
 * What a put comes to whose content was stored here before. A deletion that came between the two
 * puts, and that this node has not heard of, must not take what is answered for now: so what is
 * here, and at the blob's owners, is of this put from now on.
 */
const makeRepeat = (
  parts: ClusterParts,
  { replicate }: Pick<ReturnType<typeof makeReplicate>, "replicate">,
) => {
  const renewShards = makeRenewShards(parts)
  return async (answer: PutAnswer, put: Whole): Promise<PutAnswer> => {
    // The store has read it to say that it is there.
    const copy: HeldCopy | undefined = await parts.guard.renewRead(answer.id, put.at, put.at)
    if (copy?.kind === "whole") return replicate(answer, put, copy.put_at)
    // It is gone meanwhile: deleted, or found corrupt.
    if (copy === undefined) return replicate(await put.again(), put)
    const held = await renewShards(answer, copy.put_at)
    if (held.length === 0) throw unreachable(too_few_shards)
    return { ...answer, durable_on: held.map(({ peer }) => peer.node_id) }
  }
}

const existingOf = (cause: unknown) => {
  const fault = faultOf(cause)
  return fault._tag === "BlobAlreadyExists" ? fault.id : undefined
}

/** What of a put is decided after its bytes are here, and what an erasure code came to. */
const makeEnds = (parts: ClusterParts, failures: Failures) => {
  const { replicate, send } = makeReplicate(parts, failures)
  const releaseOrphan = makeOrphans(parts)
  const repeat = makeRepeat(parts, { replicate })
  return {
    send,
    /** Goes on with what the store answered. */
    settled: async (answer: PutAnswer, put: Whole) => {
      const is_shard = isKeptAsShard(answer, put.order.policy)
      const is_orphan = is_shard && (await releaseOrphan(answer.id, put))
      if (is_orphan) return replicate(await put.again(), put)
      if (answer.created) return replicate(answer, put)
      return isSingle(parts) ? answer : repeat(answer, put)
    },
    /** Goes on with what the store refused. */
    refused: async (cause: unknown, put: Whole) => {
      const id = existingOf(cause)
      if (id === undefined || !(await releaseOrphan(id, put))) throw cause
      return replicate(await put.again(), put)
    },
    coded: ({ answer, stored_on, failed }: ErasurePut): PutAnswer => {
      const detail = "it did not store its shard"
      failures.unreplicated(
        answer.id,
        failed,
        failed.map((node_id) => ({ node_id, detail })),
      )
      return { ...answer, durable_on: stored_on }
    },
  }
}

type Ends = ReturnType<typeof makeEnds>

/**
 * The copies leave while this disk syncs its own, and the answer waits for all: a small put takes
 * the time of one sync, not of two. If this disk fails, the put does, and its copies are what is
 * left of a put whose end nobody was told.
 */
const makePut = (parts: ClusterParts, { send, settled, refused, coded }: Ends) => {
  const { local, members } = parts
  return (order: PutOrder, bytes: Parts, at: bigint): Promise<PutAnswer> => {
    if (isErasureCode(order.policy)) return putErasure(parts, order, bytes, at).then(coded)
    const again = () => local.put(order, bytes, at)
    let early: Promise<Sending> | undefined
    const put: Whole = { order, bytes, at, again, early: () => early }
    const placed = (answer: PutAnswer) => {
      if (!isAlone(members())) early = send(answer, put)
    }
    return local.put(order, bytes, at, placed).then(
      (answer) => (answer.created && isAlone(members()) ? answer : settled(answer, put)),
      (cause: unknown) => refused(cause, put),
    )
  }
}

/**
 * Uploads: an erasure code that is known at the beginning is coded while the bytes come. One that
 * a message says behind its bytes finds them on this disk, and is coded from there.
 */
const makeUpload = (parts: ClusterParts, { settled, refused, coded }: Ends) => {
  const { local } = parts
  const uploadCoded = erasureUploads(parts)
  const again = () => Promise.reject(unreachable(in_the_way))

  return (order: PutOrder, size: number | undefined): BlobUpload => {
    if (isErasureCode(order.policy)) {
      const { write, finish, abort } = uploadCoded(order, size)
      return { write, finish: async (at) => coded(await finish(at)), abort }
    }
    const { write, finish, seal, abort } = local.upload(order, size)
    const finishWhole = (at: bigint) => {
      const put: Whole = { order, bytes: undefined, at, again }
      return finish(at).then(
        (answer) => settled(answer, put),
        (cause: unknown) => refused(cause, put),
      )
    }
    const finishCoded = async (at: bigint) => {
      try {
        return coded(await putErasure(parts, order, await seal(), at))
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
 * Lets puts in while this node does not leave, and counts them: what is stored behind the last
 * look of a leave would be gone with the node.
 */
const makeGate = ({ members }: ClusterParts) => {
  let open = 0
  return {
    open: () => open,
    through: (run: () => Promise<PutAnswer>): Promise<PutAnswer> => {
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
  const ends = makeEnds(parts, failures)
  const gate = makeGate(parts)
  const put = makePut(parts, ends)
  const upload = makeUpload(parts, ends)
  return {
    put: (order: PutOrder, bytes: Parts, at: bigint) => gate.through(() => put(order, bytes, at)),
    upload: (order: PutOrder, size: number | undefined): BlobUpload => {
      const { write, finish, abort } = upload(order, size)
      return { write, abort, finish: (at) => gate.through(() => finish(at)) }
    },
    /** Puts that are being stored at this moment. */
    open: gate.open,
  }
}
