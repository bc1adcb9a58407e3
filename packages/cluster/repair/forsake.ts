/**
 * How shards are let go that no put finished: fewer than make the blob, and nobody else's word
 * stands for the rest, as it does for a release. So their node has to be sure that it has asked
 * everybody.
 *
 * One that is cut off from the log alone asks the members that it knows, and all of them answer;
 * what a node has that joined meanwhile it does not see. Before it lets anything go, each of the
 * others says that it knows the same ring, and the log that it has no newer one. Whoever cannot be
 * asked stops it. And it asks twice what they have: a shard on its way from one node to another
 * can be at neither when they are asked, and at both by the second time.
 *
 * Source: decisions 0125, 0147.
 */
import type { Members, Peers } from "#actors/blob-storage/peers.ts"
import type { Matter } from "./acts.ts"
import { planFor } from "./plan.ts"
import type { Act, RepairView } from "./view.ts"

export interface ForsakeParts {
  readonly peers: Pick<Peers, "ringVersion">
  readonly members: () => Members
  /**
   * Whether the log, asked now, knows no change of the cluster that `members` does not show;
   * rejects where it cannot be asked.
   */
  readonly isCurrent: () => Promise<boolean>
}

type Forsake = Act & { readonly act: "forsake" }

export const isForsake = (act: Act): act is Forsake => act.act === "forsake"

/** Whether nobody knows another ring than the one that these members are by. */
const makeIsSure =
  ({ peers, members, isCurrent }: ForsakeParts) =>
  async ({ node_id, ring_version, active, leaving }: Members) => {
    const others = [...active, ...leaving].filter((peer) => peer.node_id !== node_id)
    const asking = others.map((peer) => peers.ringVersion(peer).catch(() => undefined))
    const said = await Promise.all(asking)
    if (!said.every((theirs) => theirs === ring_version)) return false
    const is_current = await isCurrent().catch(() => false)
    return is_current && members().ring_version === ring_version
  }

/**
 * Of these, which were all forsaken by their plans, those that may go. `again` asks everybody once
 * more what they have of them.
 */
export const makeForsakes = (parts: ForsakeParts) => {
  const isSure = makeIsSure(parts)
  return async (
    seen: Members,
    view: RepairView,
    matters: ReadonlyArray<Matter>,
    again: (matters: ReadonlyArray<Matter>) => Promise<ReadonlyArray<Matter>>,
  ): Promise<ReadonlyArray<Matter>> => {
    if (matters.length === 0) return []
    const lone = (await again(matters)).filter(({ answers }) =>
      planFor(view, answers).acts.some(isForsake),
    )
    return lone.length > 0 && (await isSure(seen)) ? lone : []
  }
}
