/**
 * Puts in a cluster: durable here first, then tried on the other nodes before the answer. A copy
 * that cannot be made fails nothing, it is hinted at and made later. An erasure code goes its way.
 *
 * Source: document 1 §1, §2 Replication policies; DECISIONS, document 1, placement of the receiver.
 */
import { type BlobId, hexOfBase64, type ReplicationPolicy } from "#schemas/blob-storage/blob.ts"
import type { BlobUpload, PutAnswer, PutOrder } from "./blob-engine.ts"
import { faultOf, thrown } from "./blob-fault.ts"
import { type Failed, type Failures, failedOn } from "./cluster-failures.ts"
import { type ClusterParts, isAlone, receiversOf, silence_ms_max } from "./cluster-parts.ts"
import { type ErasurePut, putErasure } from "./erasure-put.ts"
import { readableCode, searchShards } from "./erasure-search.ts"
import { erasureUploads } from "./erasure-upload.ts"
import type { CopyOrder } from "./node-engine.ts"
import { isPeerFailure } from "./peer-failure.ts"
import type { CopyBytes, Peer } from "./peers.ts"
import { isErasureCode } from "./replication.ts"

type Parts = ReadonlyArray<Uint8Array>

/** What a node answers that will not have the copy now: no failure of its own, and no copy. */
const refusals: ReadonlySet<string> = new Set(["FAILED_PRECONDITION", "ALREADY_EXISTS"])

const is_leaving = "This node is leaving the cluster: put to another."
const in_the_way = "A shard of a put that did not end was in the way. It is gone: put it again."

const unreachable = (detail: string) => thrown({ _tag: "BlobUnreachable", detail })

const orderFor = ({ id, meta }: PutAnswer, { origin }: PutOrder): CopyOrder => ({
  ...{ id, origin, shard: undefined },
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
}

/** Sends the copies of a blob that is stored here; answers with where it is durable. */
const makeReplicate = ({ local, peers, members }: ClusterParts, failures: Failures) => {
  /** The bytes as they lie here, where they are not in memory any more. */
  const stored = async (id: BlobId, at: bigint): Promise<CopyBytes> => {
    const { data, windows } = await local.read(id, {}, at)
    return data === undefined ? windows() : [data]
  }
  const sendTo = async (peer: Peer, order: CopyOrder, { bytes, at }: Whole) => {
    const { node_id } = peer
    try {
      await peers.send(peer, order, bytes ?? (await stored(order.id, at)), "put", silence_ms_max)
      return { node_id, is_durable: true, failed: [] }
    } catch (cause) {
      const is_refused = isPeerFailure(cause) && refusals.has(cause.code)
      const failed: ReadonlyArray<Failed> = is_refused ? [] : [failedOn(node_id, cause)]
      return { node_id, is_durable: false, failed }
    }
  }
  return async (answer: PutAnswer, put: Whole): Promise<PutAnswer> => {
    const now = members()
    const receivers = answer.created ? receiversOf(now, answer.meta.policy, answer.id) : []
    if (receivers.length === 0) return answer
    const order = orderFor(answer, put.order)
    const sent = await Promise.all(receivers.map((peer) => sendTo(peer, order, put)))
    const nodesWith = (durable: boolean) =>
      sent.flatMap(({ node_id, is_durable }) => (is_durable === durable ? [node_id] : []))
    failures.unreplicated(
      answer.id,
      nodesWith(false),
      sent.flatMap(({ failed }) => failed),
    )
    return { ...answer, durable_on: [now.node_id, ...nodesWith(true)] }
  }
}

/**
 * A shard here says that a put of its blob began, not that it came to an end. Where the cluster
 * has too few of its shards it is let go, and the put of a whole copy that met it is made again.
 */
const makeOrphans = (parts: ClusterParts) => {
  const { local } = parts
  /** Whether there was such a shard, which is gone now. */
  return async (id: BlobId, at: bigint) => {
    const [here] = await local.copiesOf([id])
    if (here?.kind !== "shard") return false
    const search = searchShards(parts, id, new Map())
    const is_readable = await search.until((holders) => readableCode(holders) !== undefined)
    return !is_readable && local.release(id, here.stored_at, at)
  }
}

const existingOf = (cause: unknown) => {
  const fault = faultOf(cause)
  return fault._tag === "BlobAlreadyExists" ? fault.id : undefined
}

/** What of a put is decided after its bytes are here, and what an erasure code came to. */
const makeEnds = (parts: ClusterParts, failures: Failures) => {
  const replicate = makeReplicate(parts, failures)
  const releaseOrphan = makeOrphans(parts)
  return {
    /** Goes on with what the store answered. */
    settled: async (answer: PutAnswer, put: Whole) => {
      const is_shard = isKeptAsShard(answer, put.order.policy)
      const is_orphan = is_shard && (await releaseOrphan(answer.id, put.at))
      return replicate(is_orphan ? await put.again() : answer, put)
    },
    /** Goes on with what the store refused. */
    refused: async (cause: unknown, put: Whole) => {
      const id = existingOf(cause)
      if (id === undefined || !(await releaseOrphan(id, put.at))) throw cause
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

const makePut = (parts: ClusterParts, { settled, refused, coded }: Ends) => {
  const { local, members } = parts
  return (order: PutOrder, bytes: Parts, at: bigint): Promise<PutAnswer> => {
    if (isErasureCode(order.policy)) return putErasure(parts, order, bytes, at).then(coded)
    const again = () => local.put(order, bytes, at)
    const put: Whole = { order, bytes, at, again }
    return again().then(
      (answer) =>
        isAlone(members()) && !isKeptAsShard(answer, order.policy) ? answer : settled(answer, put),
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
      ...{ write, abort },
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
