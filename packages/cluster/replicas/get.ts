/**
 * Reads blobs from the local store, or else from another node. A copy that turns out to be corrupt,
 * even in the middle of a read, is replaced by another node's.
 *
 * Source: document 1 §1, §4 BlobService; DECISIONS, document 1, integrity.
 */

import type { BlobRange, BlobReading } from "#actors/blob-storage/ports/engine.ts"
import { faultError, faultOf } from "#actors/blob-storage/ports/fault.ts"
import type { Members } from "#actors/blob-storage/ports/peers.ts"
import type { BlobId, BlobMeta } from "#schemas/blob-storage/blob.ts"
import { isErasureCode } from "#schemas/blob-storage/replication.ts"
import { getErasure } from "../erasure/get.ts"
import { type ClusterParts, isAlone, isOwner } from "./parts.ts"
import { makeBytesFrom, makeOpen, newDownload, spanOf } from "./remote.ts"
import { discard, makeSearch } from "./search.ts"

const no_nodes: ReadonlySet<string> = new Set()

const isTag = (cause: unknown, ...tags: ReadonlyArray<string>) => tags.includes(faultOf(cause)._tag)

/** Adds the offline nodes to BlobNotFound: one of them may have the blob. */
const withOffline = (id: BlobId, { offline = [] }: Members, cause: unknown) => {
  const fault = faultOf(cause)
  const is_final = fault._tag !== "BlobNotFound" || fault.not_asked !== undefined
  if (is_final || offline.length === 0) return cause
  return faultError({ _tag: "BlobNotFound", id, not_asked: offline })
}

/** Hints a blob that another node served, if this node must have an intact copy of it. */
const hintMissing = (
  { members, hint }: ClusterParts,
  id: BlobId,
  { meta }: BlobReading,
  is_corrupt: boolean,
) => {
  const is_wanted = !isErasureCode(meta.policy) && isOwner(members(), meta.policy, id)
  if (is_corrupt) hint({ id, why: "corrupt", nodes: [] })
  else if (is_wanted) hint({ id, why: "missing", nodes: [] })
}

export const makeGets = (parts: ClusterParts) => {
  const { local, members, hint } = parts
  const search = makeSearch(parts)
  const bytesFrom = makeBytesFrom(parts, search)
  const open = makeOpen(parts, search, bytesFrom)

  /** Reads a blob that has no intact whole copy in the local store. */
  const getElsewhere = async (id: BlobId, range: BlobRange, at: bigint, cause: unknown) => {
    if (!isTag(cause, "BlobNotFound", "BlobCorrupt")) throw cause
    const is_corrupt = isTag(cause, "BlobCorrupt")
    const [here] = await local.copiesOf([id])
    // The blob arrived in the meantime.
    if (here?.kind === "whole") return local.get(id, range, at)
    if (here?.kind === "shard") {
      return getErasure(parts, id, range, new Map([[members().node_id, here]]))
    }
    if (isAlone(members())) throw cause
    const reading = await open(id, range).catch((why: unknown) => {
      throw is_corrupt && isTag(why, "BlobNotFound") ? cause : why
    })
    if (here?.kind !== "tombstone") hintMissing(parts, id, reading, is_corrupt)
    return reading
  }
  /**
   * Continues on another node when the local copy turns out to be corrupt in the middle of a read.
   */
  async function* resumed(
    id: BlobId,
    { meta, windows }: BlobReading,
    range: BlobRange,
  ): AsyncGenerator<Uint8Array, void> {
    const { from, to } = spanOf(range, Number(meta.size))
    let at = from
    try {
      for await (const window of windows()) {
        at += window.length
        yield window
      }
      return
    } catch (cause) {
      if (!isTag(cause, "BlobCorrupt") || isAlone(members())) throw cause
    }
    hint({ id, why: "corrupt", nodes: [] })
    yield* bytesFrom(id, newDownload(), { from: at, to })
  }
  const statCluster = async (id: BlobId) => {
    try {
      return await local.stat(id)
    } catch (cause) {
      if (!isTag(cause, "BlobNotFound") || isAlone(members())) throw cause
      const found = await search(id, { range: { offset: 0, length: 0 }, without: no_nodes })
      if (found === undefined) throw cause
      discard(found)
      return found.fetched.meta
    }
  }
  return {
    get: (id: BlobId, range: BlobRange, at: bigint): Promise<BlobReading> => {
      const reading = local.get(id, range, at)
      if (isAlone(members()) && !members().offline?.length) return reading
      return reading.then(
        (found) =>
          found.data === undefined ? { ...found, windows: () => resumed(id, found, range) } : found,
        (cause: unknown) =>
          getElsewhere(id, range, at, cause).catch((why: unknown) => {
            throw withOffline(id, members(), why)
          }),
      )
    },
    /** The metadata of a blob on any node. */
    stat: (id: BlobId): Promise<BlobMeta> =>
      statCluster(id).catch((why: unknown) => {
        throw withOffline(id, members(), why)
      }),
  }
}
