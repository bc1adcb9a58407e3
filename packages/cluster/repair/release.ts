/**
 * Releases surplus copies so that at least one always stays.
 *
 * If two nodes with rings of different versions each considered the other the owner, both would
 * release their copies. So before a node releases a copy, owners that precede it in the blob's
 * order must confirm, for one version of the ring, that they keep theirs. A node confirms only for
 * its current version, and not for a copy that it is releasing itself. The releasing node checks
 * the version again before it acts. So the first owner in the order of the latest ring never
 * releases its copy.
 *
 * Source: decision 0125.
 */

import type { Copy, HeldCopy, NodeEngine } from "#actors/blob-storage/ports/node-engine.ts"
import type { Members, Peers } from "#actors/blob-storage/ports/peers.ts"
import { owners_max } from "#placement"
import type { BlobId } from "#schemas/blob-storage/blob.ts"
import { ownersOf } from "../erasure/layout.ts"
import { makeVerifier, type VerifierParts } from "./verification.ts"

export interface ReleaseCandidate {
  readonly copy: HeldCopy
  /** Nodes that must keep a copy; may be empty when a node leaves. */
  readonly keepers: ReadonlyArray<string>
  /** Whether the keepers must verify their copies before they confirm. */
  readonly is_last: boolean
}

export interface ReleaseParts extends VerifierParts {
  readonly local: Pick<NodeEngine, "copiesOf" | "release" | "read">
  readonly peers: Pick<Peers, "keeps">
  readonly members: () => Members
}

const isOwner = (members: Members, { id }: HeldCopy) =>
  ownersOf(members, id, owners_max).some(({ node_id }) => node_id === members.node_id)

const heldIn = (copies: ReadonlyArray<Copy | undefined>) =>
  copies.filter((copy) => copy !== undefined && copy.kind !== "tombstone")

/** The ids that each keeper must confirm. */
const idsByKeeper = (candidates: ReadonlyArray<ReleaseCandidate>) => {
  const by_keeper = new Map<string, Array<BlobId>>()
  for (const { copy, keepers } of candidates) {
    for (const keeper of keepers) {
      const ids = by_keeper.get(keeper)
      if (ids === undefined) by_keeper.set(keeper, [copy.id])
      else ids.push(copy.id)
    }
  }
  return by_keeper
}

export const makeReleases = (parts: ReleaseParts) => {
  const { local, peers, members, timing } = parts
  const verifyIntact = makeVerifier(parts)
  const releasing = new Set<BlobId>()

  /** The ids that a node confirms; none if it does not respond. */
  const confirmedBy = async (
    node_id: string,
    ids: ReadonlyArray<BlobId>,
    ring_version: number,
    is_read: boolean,
  ) => {
    const peer = members().active.find((active) => active.node_id === node_id)
    if (peer === undefined) return []
    const confirmations = await peers.keeps(peer, ids, ring_version, is_read).catch(() => [])
    return ids.filter((_, at) => confirmations[at] === true)
  }
  const releaseConfirmed = async (
    candidates: ReadonlyArray<ReleaseCandidate>,
    ring_version: number,
  ) => {
    const kept = new Map<string, Set<BlobId>>()
    const requests = [false, true].flatMap((is_read) => {
      const by_keeper = idsByKeeper(candidates.filter(({ is_last }) => is_last === is_read))
      return Array.from(by_keeper, async ([keeper, ids]) => {
        const confirmed = await confirmedBy(keeper, ids, ring_version, is_read)
        kept.set(keeper, (kept.get(keeper) ?? new Set()).union(new Set(confirmed)))
      })
    })
    await Promise.all(requests)
    const released = new Set<BlobId>()
    for (const { copy, keepers } of candidates) {
      if (!keepers.every((keeper) => kept.get(keeper)?.has(copy.id))) continue
      if (members().ring_version !== ring_version) break
      if (await local.release(copy.id, copy.stored_at, timing.now())) released.add(copy.id)
    }
    return released
  }
  return {
    /** Releases the confirmed copies for that ring version; returns the released ids. */
    release: async (
      candidates: ReadonlyArray<ReleaseCandidate>,
      ring_version: number,
    ): Promise<ReadonlySet<BlobId>> => {
      const own = candidates.filter(({ copy }) => !releasing.has(copy.id))
      for (const { copy } of own) releasing.add(copy.id)
      try {
        return await releaseConfirmed(own, ring_version)
      } finally {
        for (const { copy } of own) releasing.delete(copy.id)
      }
    },
    /** For each id, whether this node is an owner by that ring version and keeps its copy. */
    keeps: async (
      ids: ReadonlyArray<BlobId>,
      ring_version: number,
      is_read: boolean,
    ): Promise<ReadonlyArray<boolean>> => {
      const intact = is_read ? await verifyIntact(heldIn(await local.copiesOf(ids))) : undefined
      const copies = await local.copiesOf(ids)
      const now = members()
      const is_current = now.ring_version === ring_version && !now.is_leaving
      return ids.map((id, at) => {
        const copy = copies[at]
        if (!is_current || copy === undefined || copy.kind === "tombstone") return false
        if (intact !== undefined && !intact.has(id)) return false
        return !releasing.has(id) && isOwner(now, copy)
      })
    },
  }
}

export type Releases = ReturnType<typeof makeReleases>
