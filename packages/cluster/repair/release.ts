/**
 * How copies are let go so that one always stays.
 *
 * Two nodes that each think that the other has the place would both let go, if their rings are of
 * different age. So who lets go has the word of others that come before it in the blob's order of
 * owners, at one version of the ring, that they keep what they have. A node gives that word only by
 * the same version, and not for what it is letting go itself; and the ring is looked at once more
 * before it happens. So the first in the order of the last version never lets go.
 *
 * Source: decision 0125.
 */

import type { Copy, HeldCopy, NodeEngine } from "#actors/blob-storage/node-engine.ts"
import type { Members, Peers } from "#actors/blob-storage/peers.ts"
import { owners_max } from "#actors/blob-storage/placement.ts"
import type { BlobId } from "#schemas/blob-storage/blob.ts"
import { ownersOf } from "../erasure/layout.ts"
import { makeSoundness, type SoundnessParts } from "./soundness.ts"

export interface ReleaseWish {
  readonly copy: HeldCopy
  /** Who has to keep a copy; of a node that leaves it may be nobody. */
  readonly keepers: ReadonlyArray<string>
  /** Whether they have to read theirs before they say so. */
  readonly is_last: boolean
}

export interface ReleaseParts extends SoundnessParts {
  readonly local: Pick<NodeEngine, "copiesOf" | "release" | "read">
  readonly peers: Pick<Peers, "keeps">
  readonly members: () => Members
}

const isOwner = (members: Members, { id }: HeldCopy) =>
  ownersOf(members, id, owners_max).some(({ node_id }) => node_id === members.node_id)

const heldIn = (copies: ReadonlyArray<Copy | undefined>) =>
  copies.filter((copy) => copy !== undefined && copy.kind !== "tombstone")

/** What each keeper is asked for. */
const askedOf = (wishes: ReadonlyArray<ReleaseWish>) => {
  const asked = new Map<string, Array<BlobId>>()
  for (const { copy, keepers } of wishes) {
    for (const keeper of keepers) {
      const ids = asked.get(keeper)
      if (ids === undefined) asked.set(keeper, [copy.id])
      else ids.push(copy.id)
    }
  }
  return asked
}

export const makeReleases = (parts: ReleaseParts) => {
  const { local, peers, members, timing } = parts
  const readSound = makeSoundness(parts)
  const releasing = new Set<BlobId>()

  /** Which of these a node keeps; nothing, where it does not say. */
  const keptBy = async (
    node_id: string,
    ids: ReadonlyArray<BlobId>,
    ring_version: number,
    is_read: boolean,
  ) => {
    const peer = members().active.find((active) => active.node_id === node_id)
    if (peer === undefined) return []
    const said = await peers.keeps(peer, ids, ring_version, is_read).catch(() => [])
    return ids.filter((_, at) => said[at] === true)
  }
  const letGo = async (wishes: ReadonlyArray<ReleaseWish>, ring_version: number) => {
    const kept = new Map<string, Set<BlobId>>()
    const asking = [false, true].flatMap((is_read) => {
      const asked = askedOf(wishes.filter(({ is_last }) => is_last === is_read))
      return Array.from(asked, async ([keeper, ids]) => {
        const those = await keptBy(keeper, ids, ring_version, is_read)
        kept.set(keeper, (kept.get(keeper) ?? new Set()).union(new Set(those)))
      })
    })
    await Promise.all(asking)
    const released = new Set<BlobId>()
    for (const { copy, keepers } of wishes) {
      if (!keepers.every((keeper) => kept.get(keeper)?.has(copy.id))) continue
      if (members().ring_version !== ring_version) break
      if (await local.release(copy.id, copy.stored_at, timing.now())) released.add(copy.id)
    }
    return released
  }
  return {
    /** Lets go what may go by the ring of that version; answers what is gone. */
    release: async (
      wishes: ReadonlyArray<ReleaseWish>,
      ring_version: number,
    ): Promise<ReadonlySet<BlobId>> => {
      const own = wishes.filter(({ copy }) => !releasing.has(copy.id))
      for (const { copy } of own) releasing.add(copy.id)
      try {
        return await letGo(own, ring_version)
      } finally {
        for (const { copy } of own) releasing.delete(copy.id)
      }
    },
    /** Which of these this node owns by the ring of that version, has, and keeps. */
    keeps: async (
      ids: ReadonlyArray<BlobId>,
      ring_version: number,
      is_read: boolean,
    ): Promise<ReadonlyArray<boolean>> => {
      const sound = is_read ? await readSound(heldIn(await local.copiesOf(ids))) : undefined
      const copies = await local.copiesOf(ids)
      const now = members()
      const is_current = now.ring_version === ring_version && !now.is_leaving
      return ids.map((id, at) => {
        const copy = copies[at]
        if (!is_current || copy === undefined || copy.kind === "tombstone") return false
        if (sound !== undefined && !sound.has(id)) return false
        return !releasing.has(id) && isOwner(now, copy)
      })
    },
  }
}

export type Releases = ReturnType<typeof makeReleases>
