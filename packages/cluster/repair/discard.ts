/**
 * Discards shards left by unfinished puts: too few to make a blob. Unlike a release, no other node
 * confirms that it keeps a copy, so the node must be certain that it has queried all nodes.
 *
 * A node that is cut off from the log queries only the members it knows, and may miss a node that
 * has joined since. So before it discards anything, every other node must confirm that it knows the
 * same ring, and the log must have no newer one. Any node that does not respond prevents the
 * discard. The nodes are surveyed twice, because a shard in transit between two nodes can be
 * missing from both in the first survey, but not in the second.
 *
 * Source: decisions 0125, 0147.
 */
import type { Members, Peers } from "#actors/blob-storage/ports/peers.ts"
import type { BlobSurvey } from "./actions.ts"
import { planFor } from "./plan.ts"
import type { Action, RepairView } from "./view.ts"

export interface DiscardParts {
  readonly peers: Pick<Peers, "ringVersion">
  readonly members: () => Members
  /**
   * Whether `members` reflects every cluster change in the log as read now. Rejects if the log
   * cannot be read.
   */
  readonly isCurrent: () => Promise<boolean>
}

type DiscardAction = Action & { readonly kind: "discard" }

export const isDiscard = (action: Action): action is DiscardAction => action.kind === "discard"

/** Whether all nodes and the log know the ring of these members. */
const makeRingCheck =
  ({ peers, members, isCurrent }: DiscardParts) =>
  async ({ node_id, ring_version, active, leaving }: Members) => {
    const others = [...active, ...leaving].filter((peer) => peer.node_id !== node_id)
    const requests = others.map((peer) => peers.ringVersion(peer).catch(() => undefined))
    const versions = await Promise.all(requests)
    if (!versions.every((version) => version === ring_version)) return false
    const is_current = await isCurrent().catch(() => false)
    return is_current && members().ring_version === ring_version
  }

/** Returns those candidates that may be discarded. `resurvey` surveys them again on all nodes. */
export const makeDiscards = (parts: DiscardParts) => {
  const isRingCurrent = makeRingCheck(parts)
  return async (
    members: Members,
    view: RepairView,
    surveys: ReadonlyArray<BlobSurvey>,
    resurvey: (surveys: ReadonlyArray<BlobSurvey>) => Promise<ReadonlyArray<BlobSurvey>>,
  ): Promise<ReadonlyArray<BlobSurvey>> => {
    if (surveys.length === 0) return []
    const unfinished = (await resurvey(surveys)).filter(({ responses }) =>
      planFor(view, responses).actions.some(isDiscard),
    )
    return unfinished.length > 0 && (await isRingCurrent(members)) ? unfinished : []
  }
}
