/**
 * Gets in a cluster: from here where the blob is here, else from another node. A copy here that is
 * corrupt is answered by another too, also where it shows in the middle only.
 *
 * Source: document 1 §1, §4 BlobService; DECISIONS, document 1, integrity.
 */

import type { BlobRange, BlobReading } from "#actors/blob-storage/blobs/engine.ts"
import { faultOf, thrown } from "#actors/blob-storage/blobs/fault.ts"
import type { Members } from "#actors/blob-storage/peers.ts"
import { isErasureCode } from "#actors/blob-storage/replication.ts"
import type { BlobId, BlobMeta } from "#schemas/blob-storage/blob.ts"
import { getErasure } from "../erasure/get.ts"
import { type ClusterParts, isAlone, isOwner } from "./parts.ts"
import { makeBytesFrom, makeOpen, newCourse, stretchOf } from "./remote.ts"
import { dropFetched, makeSearch } from "./search.ts"

const nobody: ReadonlySet<string> = new Set()

const isTag = (cause: unknown, ...tags: ReadonlyArray<string>) => tags.includes(faultOf(cause)._tag)

/** What is nowhere may be on a node that is offline: then the answer names it. */
const missed = (id: BlobId, { offline = [] }: Members, cause: unknown) => {
  const fault = faultOf(cause)
  const is_told = fault._tag !== "BlobNotFound" || fault.not_asked !== undefined
  if (is_told || offline.length === 0) return cause
  return thrown({ _tag: "BlobNotFound", id, not_asked: offline })
}

/** What another node answered is to be here too, or anew. */
const lacks = (
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

  /** What is to be done where this node's store has no whole and sound copy. */
  const elsewhere = async (id: BlobId, range: BlobRange, at: bigint, cause: unknown) => {
    if (!isTag(cause, "BlobNotFound", "BlobCorrupt")) throw cause
    const is_corrupt = isTag(cause, "BlobCorrupt")
    const [here] = await local.copiesOf([id])
    // It came since it was asked for.
    if (here?.kind === "whole") return local.get(id, range, at)
    if (here?.kind === "shard") {
      return getErasure(parts, id, range, new Map([[members().node_id, here]]))
    }
    if (isAlone(members())) throw cause
    const reading = await open(id, range).catch((why: unknown) => {
      throw is_corrupt && isTag(why, "BlobNotFound") ? cause : why
    })
    if (here?.kind !== "tombstone") lacks(parts, id, reading, is_corrupt)
    return reading
  }
  /** A copy that turns out corrupt in the middle is gone on with at another node. */
  async function* healed(
    id: BlobId,
    { meta, windows }: BlobReading,
    range: BlobRange,
  ): AsyncGenerator<Uint8Array, void> {
    const { from, to } = stretchOf(range, Number(meta.size))
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
    yield* bytesFrom(id, newCourse(), { from: at, to })
  }
  const statAnywhere = async (id: BlobId) => {
    try {
      return await local.stat(id)
    } catch (cause) {
      if (!isTag(cause, "BlobNotFound") || isAlone(members())) throw cause
      const met = await search(id, { range: { offset: 0, length: 0 }, without: nobody })
      if (met === undefined) throw cause
      dropFetched(met)
      return met.fetched.meta
    }
  }
  return {
    get: (id: BlobId, range: BlobRange, at: bigint): Promise<BlobReading> => {
      const reading = local.get(id, range, at)
      if (isAlone(members()) && !members().offline?.length) return reading
      return reading.then(
        (found) =>
          found.data === undefined ? { ...found, windows: () => healed(id, found, range) } : found,
        (cause: unknown) =>
          elsewhere(id, range, at, cause).catch((why: unknown) => {
            throw missed(id, members(), why)
          }),
      )
    },
    /** What is known of a blob anywhere. */
    stat: (id: BlobId): Promise<BlobMeta> =>
      statAnywhere(id).catch((why: unknown) => {
        throw missed(id, members(), why)
      }),
  }
}
