/**
 * Lists the blobs of all nodes in order, by merging pages of every node's copies.
 *
 * Source: document 1 §4 rule 5; DECISIONS, document 1, list.
 */

import type { BlobPage } from "#actors/blob-storage/ports/engine.ts"
import { faultError } from "#actors/blob-storage/ports/fault.ts"
import type { Copy, CopyPage } from "#actors/blob-storage/ports/node-engine.ts"
import { type BlobId, blob_id_bytes } from "#schemas/blob-storage/blob.ts"
import { causeText } from "#schemas/cause-text.ts"
import { withTimeout } from "../erasure/survey.ts"
import { type ClusterParts, idle_ms_max, isAlone } from "./parts.ts"

const id_digits = 2 * blob_id_bytes

/** Maximum number of copies in one page of a node: about 200 bytes each. */
const copies_limit_max = 1000

/**
 * Pages per node for one page of the result. Most copies belong to blobs that other nodes have too.
 */
const rounds_max = 64

const digit_after = /[0-9a-e]f*$/
const digit_before = /[1-9a-f]0*$/

const shiftDigit = (text: string, change: number) =>
  (Number.parseInt(text.slice(0, 1), 16) + change).toString(16)

/** The exclusive bounds of the identifiers that begin with `prefix`. */
export const boundsOf = (prefix: string) => {
  const up = digit_after.exec(prefix)
  const until = up && `${prefix.slice(0, up.index)}${shiftDigit(up[0], 1)}`.padEnd(id_digits, "0")
  const down = digit_before.exec(prefix)
  const after = down && `${prefix.slice(0, down.index)}${shiftDigit(down[0], -1)}`
  return { after: after?.padEnd(id_digits, "f") ?? "", until: until ?? "" }
}

/** The combined state of a blob on all nodes; decides whether it is listed. */
interface Listed {
  is_held: boolean
  put_at: bigint
  deleted_at: bigint
}

/** The blobs of these pages up to `horizon`, in order, without those deleted from the cluster. */
export const mergedIds = (
  pages: ReadonlyArray<ReadonlyArray<Copy>>,
  horizon: string | undefined,
): ReadonlyArray<BlobId> => {
  const known = new Map<BlobId, Listed>()
  for (const copy of pages.flat()) {
    if (horizon !== undefined && copy.id > horizon) continue
    const listed = known.get(copy.id) ?? { is_held: false, put_at: -1n, deleted_at: -1n }
    known.set(copy.id, listed)
    if (copy.kind !== "tombstone") {
      listed.is_held = true
      if (copy.put_at > listed.put_at) listed.put_at = copy.put_at
    } else if (copy.is_cluster_wide && copy.deleted_at > listed.deleted_at) {
      listed.deleted_at = copy.deleted_at
    }
  }
  return [...known]
    .filter(([, { is_held, put_at, deleted_at }]) => is_held && put_at > deleted_at)
    .map(([id]) => id)
    .toSorted()
}

const smallest = (nexts: ReadonlyArray<BlobId | undefined>) =>
  nexts.filter((next) => next !== undefined).toSorted()[0]

export const makeList = (parts: ClusterParts) => {
  const { local, peers, members } = parts
  const nothing: CopyPage = { copies: [], next: undefined }
  /** Fetches one page of copies from each node. */
  const round = (after: string, until: string, limit: number) => {
    const now = members()
    const others = [...now.active, ...now.leaving].filter((peer) => peer.node_id !== now.node_id)
    const requests = others.map(async (peer): Promise<CopyPage> => {
      const request = peers.copies(peer, after, until, limit)
      if (now.unheard?.includes(peer.node_id)) {
        return (await withTimeout(parts, request, idle_ms_max).catch(() => nothing)) ?? nothing
      }
      try {
        return await request
      } catch (cause) {
        const why = causeText(cause)
        const detail = `Node ${peer.node_id} could not list its blobs: ${why}`
        throw faultError({ _tag: "BlobUnreachable", detail })
      }
    })
    return Promise.all([local.copies(after, until, limit), ...requests])
  }
  return async (after_id: string, prefix: string, limit: number): Promise<BlobPage> => {
    if (isAlone(members())) return local.list(after_id, prefix, limit)
    const bounds = boundsOf(prefix)
    const ids: Array<BlobId> = []
    let after = after_id > bounds.after ? after_id : bounds.after
    for (let rounds = 0; rounds < rounds_max; rounds++) {
      const pages = await round(after, bounds.until, Math.min(limit + 1, copies_limit_max))
      const horizon = smallest(pages.map(({ next }) => next))
      ids.push(
        ...mergedIds(
          pages.map(({ copies }) => copies),
          horizon,
        ),
      )
      if (ids.length > limit) return { ids: ids.slice(0, limit), has_more: true }
      if (horizon === undefined) return { ids, has_more: false }
      after = horizon
    }
    return { ids, has_more: true, after_id: after }
  }
}
