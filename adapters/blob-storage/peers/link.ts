/**
 * Peers over the links to the other nodes.
 *
 * Source: document 1 §1 InternalService; DECISIONS, document 1, InternalService; decision 0122.
 */

import type { CopyOrder } from "#actors/blob-storage/ports/node-engine.ts"
import type { CopyBytes, Fetched, Peer, Peers } from "#actors/blob-storage/ports/peers.ts"
import type { PeerCalls, Spoken } from "#adapters/blob-storage/peer/call.ts"
import type { Asked, Said } from "#adapters/blob-storage/peer/link.ts"
import { version_with_batches, version_with_puts } from "#adapters/blob-storage/peer/version.ts"
import { peerFailure } from "#cluster"
import { copyBytes, putAtIn, sizeOf } from "#volume"
import { batched_bytes_max, type CopySent } from "./batch.ts"
import { copies_max, copyBytesIn, decodeCopies, decodeHeld, encodeIds } from "./copy.ts"
import { encodeOrder, messages, operationOf, operations } from "./message.ts"
import { copyQueue } from "./queue.ts"

/** A deletion or a release, one write to a disk each, or what is in memory; in milliseconds. */
const change_ms_max = 5000

/** What is known of 10,000 blobs is read from as many places of a disk, in milliseconds. */
const list_ms_max = 30_000

/** Records are answered for what was asked, and nothing else. */
const gathered = async (said: Said, bytes_max: number) => {
  if (said.whole !== undefined) return said.whole
  const parts: Array<Uint8Array> = []
  let bytes = 0
  for await (const piece of said.pieces()) {
    bytes += piece.length
    if (bytes > bytes_max) throw peerFailure("INTERNAL", "a node answers more than was asked for")
    parts.push(piece)
  }
  return Buffer.concat(parts)
}

/** An answer's bytes, none of which may come later than `deadline_ms` after it was asked for. */
const hurried = (said: Asked, deadline_ms: number): AsyncIterableIterator<Uint8Array> => {
  const pieces = said.pieces()
  const late = () => {
    const detail = `the node sent nothing for ${deadline_ms} ms`
    said.stop(peerFailure("DEADLINE_EXCEEDED", detail))
  }
  return {
    [Symbol.asyncIterator]() {
      return this
    },
    next: async () => {
      const timer = setTimeout(late, deadline_ms)
      try {
        return await pieces.next()
      } finally {
        clearTimeout(timer)
      }
    },
    return: async () => {
      // Ends a piece that is waited for too, which a generator's own `return` would wait for.
      said.stop(peerFailure("UNAVAILABLE", "the answer is not wanted any more"))
      await pieces.return(undefined)
      return { done: true, value: undefined }
    },
  }
}

/** Bytes that are all there already, but for what an iterable brings. */
const isStream = (bytes: CopyBytes): bytes is AsyncIterable<Uint8Array> =>
  Symbol.asyncIterator in bytes

/** What a node of the release before cannot be asked: it can once it has been exchanged. */
const older = ({ node_id }: Peer, what: string) =>
  peerFailure("UNAVAILABLE", `${node_id} is of an older release, which ${what}`)

const isOlder = ({ version }: Spoken) => version < version_with_puts

type Changes = Pick<Peers, "send" | "takeBack" | "renew" | "deleteClusterWide">

/** A copy that may go with others; undefined: it is too large, or not as long as it is told. */
const smallOf = (operation: number, order: CopyOrder, bytes: CopyBytes): CopySent | undefined => {
  const size = copyBytes(order.size, order.shard)
  if (operation !== operations.replicate || size > batched_bytes_max) return undefined
  if (isStream(bytes) || sizeOf(bytes) !== size) return undefined
  return { order, bytes, size }
}

/** The queue of small copies of each connection. */
const queues = () => {
  const known = new WeakMap<Spoken, ReturnType<typeof copyQueue>>()
  return (link: Spoken) => {
    const found = known.get(link) ?? copyQueue(link)
    known.set(link, found)
    return found
  }
}

/** What is changed on other nodes. */
const changesOver = (calls: PeerCalls): Changes => {
  const change = async ({ address }: Peer, operation: number, json: unknown) => {
    await calls.ask(address, operation, json, [], change_ms_max)
  }
  const queueOf = queues()
  return {
    send: async (peer, order, bytes, reason, deadline_ms) => {
      const operation = operationOf(order, isStream(bytes), reason)
      const link = await calls.to(peer.address)
      const { version } = link
      const small = version < version_with_batches ? undefined : smallOf(operation, order, bytes)
      if (small !== undefined) return queueOf(link).send(small, deadline_ms)
      const said = await link.ask(operation, encodeOrder(order, version), bytes, deadline_ms)
      const { created } = messages.stored.decode(said.json)
      const copy = decodeHeld(await gathered(said, copyBytesIn(version)), version)
      if (isOlder(link) && copy.put_at < putAtIn(order)) {
        throw older(peer, "keeps the copy of an older put")
      }
      return { copy, created }
    },
    takeBack: (peer, id, created_at) =>
      change(peer, operations.take_back, messages.take_back.encode({ id, created_at })),
    renew: async (peer, id, put_at, deadline_ms) => {
      const json = messages.renew.encode({ id, put_at })
      const link = await calls.to(peer.address)
      if (isOlder(link)) throw older(peer, "does not take over the time of a put")
      const said = await link.ask(operations.renew, json, [], deadline_ms)
      const { version } = link
      const [copy] = decodeCopies(await gathered(said, copyBytesIn(version)), version)
      if (copy?.kind !== "tombstone") return copy
      throw peerFailure("INTERNAL", "a node answers with a deletion where it has a copy")
    },
    deleteClusterWide: (peer, id, { actor, request_id, correlation_id }, deleted_at) => {
      const origin = { actor, request_id, correlation_id }
      const json = messages.delete_internal.encode({ id, origin, deleted_at })
      return change(peer, operations.delete_internal, json)
    },
  }
}

/** What other nodes are asked. */
const questionsOver = (calls: PeerCalls): Omit<Peers, keyof Changes> => ({
  fetch: async ({ address }, id, { offset, length }, deadline_ms): Promise<Fetched> => {
    const json = messages.fetch_shard.encode({
      id,
      ...(offset !== undefined && { offset }),
      ...(length !== undefined && { length }),
    })
    const { version, ask } = await calls.to(address)
    const said = await ask(operations.fetch_shard, json, [], deadline_ms)
    try {
      const { copy: record, labels, modified_at } = messages.fetched.decode(said.json)
      const copy = decodeHeld(Buffer.from(record, "base64"), version)
      const checksum = Buffer.from(copy.checksum, "hex").toString("base64")
      const { created_at, policy } = copy
      const meta = { size: BigInt(copy.size), created_at, modified_at, checksum, labels, policy }
      return { copy, meta, bytes: hurried(said, deadline_ms) }
    } catch (cause) {
      said.stop(cause instanceof Error ? cause : new Error(String(cause)))
      throw cause
    }
  },
  have: async ({ address }, ids) => {
    if (ids.length === 0) return []
    const { version, ask } = await calls.to(address)
    const said = await ask(operations.have, {}, [encodeIds(ids)], list_ms_max)
    const bytes = await gathered(said, ids.length * copyBytesIn(version))
    const copies = decodeCopies(bytes, version)
    if (copies.length === ids.length) return copies
    throw peerFailure("INTERNAL", `a node answers ${copies.length} of ${ids.length} questions`)
  },
  ringVersion: async (peer) => {
    const link = await calls.to(peer.address)
    if (isOlder(link)) throw older(peer, "does not tell its ring")
    const said = await link.ask(operations.ring, {}, [], change_ms_max)
    return messages.ring.decode(said.json).ring_version
  },
  copies: async ({ address }, after_id, until_id, limit) => {
    const json = messages.copies.encode({
      after_id,
      until_id,
      limit: Math.min(limit, copies_max),
    })
    const { version, ask } = await calls.to(address)
    const said = await ask(operations.copies, json, [], list_ms_max)
    const { next } = messages.page.decode(said.json)
    const copies = decodeCopies(await gathered(said, limit * copyBytesIn(version)), version)
    return { copies: copies.filter((copy) => copy !== undefined), next }
  },
  keeps: async ({ address }, ids, ring_version, is_read) => {
    if (ids.length === 0) return []
    const link = await calls.to(address)
    // It gives its word without having read what it keeps.
    if (isOlder(link) && is_read) return ids.map(() => false)
    const json = messages.keeps.encode({ ring_version, is_read })
    const said = await link.ask(operations.keeps, json, [encodeIds(ids)], list_ms_max)
    const kept = await gathered(said, ids.length)
    if (kept.length === ids.length) return Array.from(kept, (byte) => byte === 1)
    throw peerFailure("INTERNAL", `a node answers ${kept.length} of ${ids.length} questions`)
  },
})

/** The other nodes' stores over these calls, each in the version of the link that it speaks. */
export const peersLink = (calls: PeerCalls): Peers => ({
  ...changesOver(calls),
  ...questionsOver(calls),
})
