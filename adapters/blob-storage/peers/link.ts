/**
 * Implements the port `Peers` over the links to other nodes.
 *
 * Source: document 1 §1 InternalService; DECISIONS, document 1, InternalService; decision 0122.
 */

import type { CopyOrder } from "#actors/blob-storage/ports/node-engine.ts"
import type { CopyBytes, Fetched, Peer, Peers } from "#actors/blob-storage/ports/peers.ts"
import type { Connection, PeerCalls } from "#adapters/blob-storage/peer/call.ts"
import type { Message, ReceivedResponse } from "#adapters/blob-storage/peer/link.ts"
import { version_with_batches, version_with_puts } from "#adapters/blob-storage/peer/version.ts"
import { peerFailure } from "#cluster"
import { copyBytes, putAtIn, sizeOf } from "#volume"
import { batched_bytes_max, type SentCopy } from "./batch.ts"
import { copies_max, copyBytesIn, decodeCopies, decodeHeld, encodeIds } from "./copy.ts"
import { encodeOrder, messages, operationOf, operations } from "./message.ts"
import { copyQueue } from "./queue.ts"

/** Timeout of changes, each one disk write, and of reads from memory, in milliseconds. */
const change_ms_max = 5000

/** Timeout of lists: 10,000 records may need as many disk reads. Milliseconds. */
const list_ms_max = 30_000

/** Collects a response of limited size. */
const collect = async (message: Message, bytes_max: number) => {
  if (message.whole !== undefined) return message.whole
  const parts: Array<Uint8Array> = []
  let bytes = 0
  for await (const piece of message.pieces()) {
    bytes += piece.length
    if (bytes > bytes_max) throw peerFailure("INTERNAL", "the message of a node is too long")
    parts.push(piece)
  }
  return Buffer.concat(parts)
}

/** The body of a response, with a timeout of `deadline_ms` for each piece. */
const withPieceTimeout = (
  response: ReceivedResponse,
  deadline_ms: number,
): AsyncIterableIterator<Uint8Array> => {
  const pieces = response.pieces()
  const onTimeout = () => {
    const detail = `the node sent nothing for ${deadline_ms} ms`
    response.stop(peerFailure("DEADLINE_EXCEEDED", detail))
  }
  return {
    [Symbol.asyncIterator]() {
      return this
    },
    next: async () => {
      const timer = setTimeout(onTimeout, deadline_ms)
      try {
        return await pieces.next()
      } finally {
        clearTimeout(timer)
      }
    },
    return: async () => {
      // Also ends a pending read, for which a generator's own `return` would wait.
      response.stop(peerFailure("UNAVAILABLE", "the response was cancelled"))
      await pieces.return(undefined)
      return { done: true, value: undefined }
    },
  }
}

/** Whether the bytes arrive over time rather than being in memory. */
const isStream = (bytes: CopyBytes): bytes is AsyncIterable<Uint8Array> =>
  Symbol.asyncIterator in bytes

/**
 * The failure of a request that an older release does not support. It succeeds after the upgrade.
 */
const older = ({ node_id }: Peer, what: string) =>
  peerFailure("UNAVAILABLE", `${node_id} runs an older release, which ${what}`)

const isOlder = ({ version }: Connection) => version < version_with_puts

type Changes = Pick<Peers, "send" | "rollBack" | "renew" | "deleteClusterWide">

/** A copy that fits in a batch; undefined if it is too large or its length is wrong. */
const batchable = (operation: number, order: CopyOrder, bytes: CopyBytes): SentCopy | undefined => {
  const size = copyBytes(order.size, order.shard)
  if (operation !== operations.replicate || size > batched_bytes_max) return undefined
  if (isStream(bytes) || sizeOf(bytes) !== size) return undefined
  return { order, bytes, size }
}

/** The batch queue of each connection. */
const queues = () => {
  const known = new WeakMap<Connection, ReturnType<typeof copyQueue>>()
  return (link: Connection) => {
    const queue = known.get(link) ?? copyQueue(link)
    known.set(link, queue)
    return queue
  }
}

/** The operations that change other nodes. */
const changesOver = (calls: PeerCalls): Changes => {
  const change = async ({ address }: Peer, operation: number, json: unknown) => {
    await calls.call(address, operation, json, [], change_ms_max)
  }
  const queueOf = queues()
  return {
    send: async (peer, order, bytes, reason, deadline_ms) => {
      const operation = operationOf(order, isStream(bytes), reason)
      const link = await calls.to(peer.address)
      const { version } = link
      const small = version < version_with_batches ? undefined : batchable(operation, order, bytes)
      if (small !== undefined) return queueOf(link).send(small, deadline_ms)
      const response = await link.call(operation, encodeOrder(order, version), bytes, deadline_ms)
      const { created } = messages.stored.decode(response.json)
      const copy = decodeHeld(await collect(response, copyBytesIn(version)), version)
      if (isOlder(link) && copy.put_at < putAtIn(order)) {
        throw older(peer, "keeps the copy of an older put")
      }
      return { copy, created }
    },
    rollBack: (peer, id, created_at) =>
      change(peer, operations.take_back, messages.take_back.encode({ id, created_at })),
    renew: async (peer, id, put_at, deadline_ms) => {
      const json = messages.renew.encode({ id, put_at })
      const link = await calls.to(peer.address)
      if (isOlder(link)) throw older(peer, "cannot renew copies")
      const response = await link.call(operations.renew, json, [], deadline_ms)
      const { version } = link
      const [copy] = decodeCopies(await collect(response, copyBytesIn(version)), version)
      if (copy?.kind !== "tombstone") return copy
      throw peerFailure("INTERNAL", "a node responded with a deletion instead of a copy")
    },
    deleteClusterWide: (peer, id, { actor, request_id, correlation_id }, deleted_at) => {
      const origin = { actor, request_id, correlation_id }
      const json = messages.delete_internal.encode({ id, origin, deleted_at })
      return change(peer, operations.delete_internal, json)
    },
  }
}

/** The operations that read from other nodes. */
const readsOver = (calls: PeerCalls): Omit<Peers, keyof Changes> => ({
  fetch: async ({ address }, id, { offset, length }, deadline_ms): Promise<Fetched> => {
    const json = messages.fetch_shard.encode({
      id,
      ...(offset !== undefined && { offset }),
      ...(length !== undefined && { length }),
    })
    const { version, call } = await calls.to(address)
    const response = await call(operations.fetch_shard, json, [], deadline_ms)
    try {
      const { copy: record, labels, modified_at } = messages.fetched.decode(response.json)
      const copy = decodeHeld(Buffer.from(record, "base64"), version)
      const checksum = Buffer.from(copy.checksum, "hex").toString("base64")
      const { created_at, policy } = copy
      const meta = { size: BigInt(copy.size), created_at, modified_at, checksum, labels, policy }
      return { copy, meta, bytes: withPieceTimeout(response, deadline_ms) }
    } catch (cause) {
      response.stop(cause instanceof Error ? cause : new Error(String(cause)))
      throw cause
    }
  },
  copiesOf: async ({ address }, ids) => {
    if (ids.length === 0) return []
    const { version, call } = await calls.to(address)
    const response = await call(operations.have, {}, [encodeIds(ids)], list_ms_max)
    const bytes = await collect(response, ids.length * copyBytesIn(version))
    const copies = decodeCopies(bytes, version)
    if (copies.length === ids.length) return copies
    throw peerFailure("INTERNAL", `a node returned ${copies.length} of ${ids.length} records`)
  },
  ringVersion: async (peer) => {
    const link = await calls.to(peer.address)
    if (isOlder(link)) throw older(peer, "does not report its ring version")
    const response = await link.call(operations.ring, {}, [], change_ms_max)
    return messages.ring.decode(response.json).ring_version
  },
  copies: async ({ address }, after_id, until_id, limit) => {
    const json = messages.copies.encode({
      after_id,
      until_id,
      limit: Math.min(limit, copies_max),
    })
    const { version, call } = await calls.to(address)
    const response = await call(operations.copies, json, [], list_ms_max)
    const { next } = messages.page.decode(response.json)
    const copies = decodeCopies(await collect(response, limit * copyBytesIn(version)), version)
    return { copies: copies.filter((copy) => copy !== undefined), next }
  },
  keeps: async ({ address }, ids, ring_version, is_read) => {
    if (ids.length === 0) return []
    const link = await calls.to(address)
    // An older release would confirm the copies without verifying them.
    if (isOlder(link) && is_read) return ids.map(() => false)
    const json = messages.keeps.encode({ ring_version, is_read })
    const response = await link.call(operations.keeps, json, [encodeIds(ids)], list_ms_max)
    const confirmations = await collect(response, ids.length)
    if (confirmations.length === ids.length) return Array.from(confirmations, (byte) => byte === 1)
    throw peerFailure(
      "INTERNAL",
      `a node returned ${confirmations.length} of ${ids.length} confirmations`,
    )
  },
})

/** The other nodes' stores over these connections, each in its protocol version. */
export const peersLink = (calls: PeerCalls): Peers => ({
  ...changesOver(calls),
  ...readsOver(calls),
})
