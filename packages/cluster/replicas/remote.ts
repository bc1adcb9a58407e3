/**
 * Streams a blob from other nodes, window by window. A node that fails in the middle is replaced by
 * another. A whole blob is hashed while it streams, and its last piece is held back until the hash
 * matches, so that no client accepts a corrupt blob as complete.
 *
 * Source: document 1 §1; DECISIONS, document 1, integrity.
 */

import type { BlobRange, BlobReading } from "#actors/blob-storage/ports/engine.ts"
import { faultError } from "#actors/blob-storage/ports/fault.ts"
import { joined } from "#erasure"
import {
  type BlobId,
  type BlobMeta,
  get_chunk_bytes_max,
  hexOfBase64,
} from "#schemas/blob-storage/blob.ts"
import { getErasure } from "../erasure/get.ts"
import type { ClusterParts } from "./parts.ts"
import { discard, type Found, type Search } from "./search.ts"

/** A range of bytes: `from` inclusive, `to` exclusive. */
export interface Span {
  readonly from: number
  readonly to: number
}

export const spanOf = ({ offset = 0, length }: BlobRange, size: number): Span => {
  const from = Math.min(offset, size)
  return { from, to: length === undefined ? size : Math.min(from + length, size) }
}

/** No node has the blob; if nodes failed while sending it, its state is unknown. */
const notFound = (id: BlobId, failed: ReadonlySet<string>) => {
  if (failed.size === 0) return faultError({ _tag: "BlobNotFound", id })
  const detail = `The blob ${id} could not be read completely from ${[...failed].join(", ")}.`
  return faultError({ _tag: "BlobUnreachable", detail })
}

/** The error for bytes that do not match the blob. */
const mismatch = (id: BlobId, node_id = "another node") =>
  faultError({
    _tag: "BlobStoreFailed",
    detail: `The bytes of ${id} from ${node_id} do not match its checksum.`,
  })

/** Collects a range of one window or less. */
const gather = async ({ peer, fetched }: Found, id: BlobId, range: BlobRange) => {
  const { from, to } = spanOf(range, fetched.copy.size)
  const pieces: Array<Uint8Array> = []
  let bytes = 0
  for await (const piece of fetched.bytes) {
    pieces.push(piece)
    bytes += piece.length
    if (bytes > to - from) break
  }
  if (bytes !== to - from) throw mismatch(id, peer.node_id)
  return joined(pieces, bytes)
}

/** A reader of bytes in memory. */
const windowsOver = (data: Uint8Array) =>
  async function* () {
    if (data.length > 0) yield data
  }

/** The node that sends now, and the nodes that failed. */
interface Download {
  readonly failed: Set<string>
  peer: Found["peer"] | undefined
}

export const newDownload = (): Download => ({ failed: new Set(), peer: undefined })

/** Hashes a whole blob while it streams; there is nothing to compare for a part. */
const makeCheck = ({ hasher }: ClusterParts, meta: BlobMeta, is_whole: boolean) => {
  const hash = is_whole ? hasher() : undefined
  return {
    pass: (bytes: Uint8Array) => hash?.update(bytes),
    assertWhole: (id: BlobId, node_id?: string) => {
      if (hash && hash.digest() !== hexOfBase64(meta.checksum)) throw mismatch(id, node_id)
    },
  }
}
type Check = ReturnType<typeof makeCheck>

const shardsOf = (parts: ClusterParts, id: BlobId, range: BlobRange, found: Found) => {
  discard(found)
  return getErasure(parts, id, range, new Map([[found.peer.node_id, found.fetched.copy]]))
}

/** Streams a span from one node after another, as needed. */
export const makeBytesFrom = (parts: ClusterParts, search: Search) =>
  async function* (
    id: BlobId,
    download: Download,
    { from, to }: Span,
  ): AsyncGenerator<Uint8Array, void> {
    for (let at = from; at < to; ) {
      const range = { offset: at, length: to - at }
      const { failed, peer } = download
      const found = await search(id, { range, without: failed, ...(peer && { first: peer }) })
      if (found === undefined) throw notFound(id, failed)
      if (found.fetched.copy.kind === "shard") {
        yield* (await shardsOf(parts, id, range, found)).windows()
        return
      }
      download.peer = found.peer
      try {
        for await (const piece of found.fetched.bytes) {
          const part = piece.subarray(0, to - at)
          at += part.length
          if (part.length > 0) yield part
          if (at >= to) return
        }
      } catch {
        // Another node continues from here.
      }
      failed.add(found.peer.node_id)
    }
  }
export type BytesFrom = ReturnType<typeof makeBytesFrom>

/** Fetches the first window of a range from the first node that sends it completely and intact. */
const makeFirstWindow =
  (parts: ClusterParts, search: Search) =>
  async (id: BlobId, range: BlobRange, download: Download) => {
    const length = Math.min(range.length ?? get_chunk_bytes_max, get_chunk_bytes_max)
    const window = { offset: range.offset ?? 0, length }
    for (;;) {
      const found = await search(id, { range: window, without: download.failed })
      if (found === undefined || found.fetched.copy.kind === "shard")
        return { found, data: undefined }
      try {
        const data = await gather(found, id, window)
        const { meta, copy } = found.fetched
        const check = makeCheck(parts, meta, data.length === copy.size)
        check.pass(data)
        check.assertWhole(id, found.peer.node_id)
        download.peer = found.peer
        return { found, data }
      } catch {
        download.failed.add(found.peer.node_id)
      }
    }
  }

/** Opens a blob that is not stored here. No connection stays open until someone reads. */
export const makeOpen = (parts: ClusterParts, search: Search, bytesFrom: BytesFrom) => {
  const firstWindow = makeFirstWindow(parts, search)

  /** Yields `first` and then the remaining bytes. */
  async function* windows(
    id: BlobId,
    download: Download,
    first: Uint8Array,
    { from, to }: Span,
    check: Check,
  ): AsyncGenerator<Uint8Array, void> {
    check.pass(first)
    let held = first
    for await (const piece of bytesFrom(id, download, { from: from + first.length, to })) {
      if (held.length > 0) yield held
      check.pass(piece)
      held = piece
    }
    check.assertWhole(id, download.peer?.node_id)
    if (held.length > 0) yield held
  }
  return async (id: BlobId, range: BlobRange): Promise<BlobReading> => {
    const download = newDownload()
    const { found, data } = await firstWindow(id, range, download)
    if (found === undefined) throw notFound(id, download.failed)
    if (data === undefined) return shardsOf(parts, id, range, found)
    const { meta, copy } = found.fetched
    const span = spanOf(range, copy.size)
    const bytes = span.to - span.from
    if (bytes <= data.length) return { meta, data, windows: windowsOver(data) }
    const begin = () => {
      const check = makeCheck(parts, meta, bytes === copy.size)
      return windows(id, { ...download, failed: new Set() }, data, span, check)
    }
    return { meta, data: undefined, windows: begin }
  }
}
