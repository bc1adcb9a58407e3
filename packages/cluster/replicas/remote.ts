/**
 * Bytes of a blob from other nodes, window by window. A node that fails in the middle is exchanged
 * for another. What comes in full is hashed on the way, and its last piece is held back until the
 * hash agrees: nobody takes a wrong blob for a whole one.
 *
 * Source: document 1 §1; DECISIONS, document 1, integrity.
 */

import type { BlobRange, BlobReading } from "#actors/blob-storage/blobs/engine.ts"
import { thrown } from "#actors/blob-storage/blobs/fault.ts"
import { joined } from "#erasure"
import {
  type BlobId,
  type BlobMeta,
  get_chunk_bytes_max,
  hexOfBase64,
} from "#schemas/blob-storage/blob.ts"
import { getErasure } from "../erasure/get.ts"
import type { ClusterParts } from "./parts.ts"
import { dropFetched, type Met, type Search } from "./search.ts"

/** Where bytes of a blob begin, and before which they end. */
export interface Stretch {
  readonly from: number
  readonly to: number
}

export const stretchOf = ({ offset = 0, length }: BlobRange, size: number): Stretch => {
  const from = Math.min(offset, size)
  return { from, to: length === undefined ? size : Math.min(from + length, size) }
}

/** Nobody has it; where nodes that had it failed on the way, nobody knows. */
const missing = (id: BlobId, failed: ReadonlySet<string>) => {
  if (failed.size === 0) return thrown({ _tag: "BlobNotFound", id })
  const detail = `The blob ${id} could not be read to its end from ${[...failed].join(", ")}.`
  return thrown({ _tag: "BlobUnreachable", detail })
}

/** Bytes of another node that are not those of the blob. */
const foreign = (id: BlobId, node_id = "another node") =>
  thrown({ _tag: "BlobStoreFailed", detail: `What ${node_id} sent of ${id} is another content.` })

/** All that a node sends of a range that is one window or less. */
const gather = async ({ peer, fetched }: Met, id: BlobId, range: BlobRange) => {
  const { from, to } = stretchOf(range, fetched.copy.size)
  const pieces: Array<Uint8Array> = []
  let bytes = 0
  for await (const piece of fetched.bytes) {
    pieces.push(piece)
    bytes += piece.length
    if (bytes > to - from) break
  }
  if (bytes !== to - from) throw foreign(id, peer.node_id)
  return joined(pieces, bytes)
}

/** Windows of bytes that are in memory. */
const windowsOf = (data: Uint8Array) =>
  async function* () {
    if (data.length > 0) yield data
  }

/** Who sends at the moment, and whose bytes were no good. */
interface Course {
  readonly without: Set<string>
  peer: Met["peer"] | undefined
}

export const newCourse = (): Course => ({ without: new Set(), peer: undefined })

/** The hash of a whole blob as it passes; of a part there is nothing to compare. */
const makeCheck = ({ hasher }: ClusterParts, meta: BlobMeta, is_whole: boolean) => {
  const hash = is_whole ? hasher() : undefined
  return {
    pass: (bytes: Uint8Array) => hash?.update(bytes),
    assertWhole: (id: BlobId, node_id?: string) => {
      if (hash && hash.digest() !== hexOfBase64(meta.checksum)) throw foreign(id, node_id)
    },
  }
}
type Check = ReturnType<typeof makeCheck>

const shardsOf = (parts: ClusterParts, id: BlobId, range: BlobRange, met: Met) => {
  dropFetched(met)
  return getErasure(parts, id, range, new Map([[met.peer.node_id, met.fetched.copy]]))
}

/** The bytes of a stretch, from whichever nodes have them one after the other. */
export const makeBytesFrom = (parts: ClusterParts, search: Search) =>
  async function* (
    id: BlobId,
    course: Course,
    { from, to }: Stretch,
  ): AsyncGenerator<Uint8Array, void> {
    for (let at = from; at < to; ) {
      const range = { offset: at, length: to - at }
      const { without, peer } = course
      const met = await search(id, { range, without, ...(peer && { first: peer }) })
      if (met === undefined) throw missing(id, without)
      if (met.fetched.copy.kind === "shard") {
        yield* (await shardsOf(parts, id, range, met)).windows()
        return
      }
      course.peer = met.peer
      try {
        for await (const piece of met.fetched.bytes) {
          const part = piece.subarray(0, to - at)
          at += part.length
          if (part.length > 0) yield part
          if (at >= to) return
        }
      } catch {
        // Another one goes on where this one ended.
      }
      without.add(met.peer.node_id)
    }
  }
export type BytesFrom = ReturnType<typeof makeBytesFrom>

/** The first window of a range, from the first node that gives it in full and sound. */
const makeFirstWindow =
  (parts: ClusterParts, search: Search) => async (id: BlobId, range: BlobRange, course: Course) => {
    const length = Math.min(range.length ?? get_chunk_bytes_max, get_chunk_bytes_max)
    const window = { offset: range.offset ?? 0, length }
    for (;;) {
      const met = await search(id, { range: window, without: course.without })
      if (met === undefined || met.fetched.copy.kind === "shard") return { met, data: undefined }
      try {
        const data = await gather(met, id, window)
        const { meta, copy } = met.fetched
        const check = makeCheck(parts, meta, data.length === copy.size)
        check.pass(data)
        check.assertWhole(id, met.peer.node_id)
        course.peer = met.peer
        return { met, data }
      } catch {
        course.without.add(met.peer.node_id)
      }
    }
  }

/** Opens a blob of which nothing is here. Nothing stays open where nobody reads it. */
export const makeOpen = (parts: ClusterParts, search: Search, bytesFrom: BytesFrom) => {
  const firstWindow = makeFirstWindow(parts, search)

  /** `first`, and the bytes behind it. */
  async function* windows(
    id: BlobId,
    course: Course,
    first: Uint8Array,
    { from, to }: Stretch,
    check: Check,
  ): AsyncGenerator<Uint8Array, void> {
    check.pass(first)
    let held = first
    for await (const piece of bytesFrom(id, course, { from: from + first.length, to })) {
      if (held.length > 0) yield held
      check.pass(piece)
      held = piece
    }
    check.assertWhole(id, course.peer?.node_id)
    if (held.length > 0) yield held
  }
  return async (id: BlobId, range: BlobRange): Promise<BlobReading> => {
    const course = newCourse()
    const { met, data } = await firstWindow(id, range, course)
    if (met === undefined) throw missing(id, course.without)
    if (data === undefined) return shardsOf(parts, id, range, met)
    const { meta, copy } = met.fetched
    const stretch = stretchOf(range, copy.size)
    const bytes = stretch.to - stretch.from
    if (bytes <= data.length) return { meta, data, windows: windowsOf(data) }
    const begin = () => {
      const check = makeCheck(parts, meta, bytes === copy.size)
      return windows(id, { ...course, without: new Set() }, data, stretch, check)
    }
    return { meta, data: undefined, windows: begin }
  }
}
