/**
 * Plans the repair of one blob from the copies that all nodes report. Pure. Each node with a copy
 * plans for itself with the same rules, so that one of them acts while the others wait.
 *
 * Source: document 1 §1, §3 leave; DECISIONS, document 1, graceful leave, delete and replicas,
 * placement of the receiving node; decision 0125.
 */
import type { HeldCopy } from "#actors/blob-storage/ports/node-engine.ts"
import { isErasureCode, nodes_needed } from "#schemas/blob-storage/replication.ts"
import { planMixed, planShards } from "./plan-shards.ts"
import {
  type Action,
  acceptingOwners,
  type CopyState,
  copyStateOf,
  early,
  isReleasable,
  isSettling,
  isTurn,
  nothing,
  type Plan,
  type RepairView,
  type Responses,
  renewals,
} from "./view.ts"

/** The latest cluster-wide deletion, if it is later than the last put. */
const deletionAfter = (responses: Responses, put_at: bigint) => {
  let newest: bigint | undefined
  for (const copy of responses.values()) {
    if (copy?.kind !== "tombstone" || !copy.is_cluster_wide) continue
    if (copy.deleted_at >= put_at && copy.deleted_at > (newest ?? -1n)) newest = copy.deleted_at
  }
  return newest
}

/** Releases a misplaced copy when that is safe and due. */
const releaseIfDue = (
  view: RepairView,
  responses: Responses,
  mine: HeldCopy,
  owners: ReadonlyArray<string>,
): ReadonlyArray<Action> => {
  const keepers = owners.filter((owner) => copyStateOf(responses, owner, mine.put_at) === "whole")
  const is_last = keepers.length === 1
  const release: Action = { kind: "release", stored_at: mine.stored_at, keepers, is_last }
  // A leaving node settles for one keeper. If all other nodes refuse the copy, it stays here for
  // good.
  if (view.is_leaving) return keepers.length > 0 ? [release] : []
  const is_safe = keepers.length === nodes_needed[mine.policy]
  return is_safe && isReleasable(view, mine) ? [release] : []
}

const planWhole = (view: RepairView, responses: Responses, model: HeldCopy): Plan => {
  const { node_id } = view
  const { put_at, policy } = model
  const owners = acceptingOwners(view, responses, model, nodes_needed[policy])
  const ownersIn = (wanted: CopyState) =>
    owners.filter((owner) => copyStateOf(responses, owner, put_at) === wanted)
  const lacking = ownersIn("empty")
  const older = ownersIn("older")
  const node_ids = responses
    .keys()
    .filter((node) => copyStateOf(responses, node, put_at) === "whole")
    .toArray()
  const holders = [
    ...ownersIn("whole"),
    ...node_ids.filter((node) => !owners.includes(node)).sort(),
  ]
  const rank = holders.indexOf(node_id)
  const gaps = lacking.length + older.length
  const base = { ...nothing, gaps, is_known: ownersIn("unknown").length === 0 }
  if (rank < 0) {
    const is_mine = lacking.includes(node_id)
    return is_mine ? { ...base, actions: [{ kind: "pull", from: holders }] } : base
  }
  if (isSettling(view, model)) return early
  const is_displaced = !owners.includes(node_id)
  const push = (to: string): Action => ({ kind: "push", to, is_migration: is_displaced })
  const is_turn = isTurn(view.sweep_number, rank)
  const repairs = is_turn ? [...lacking.map(push), ...renewals(older, model)] : []
  const may_release = is_displaced && base.is_known && gaps === 0
  const releases = may_release ? releaseIfDue(view, responses, model, owners) : []
  return { ...base, is_displaced, actions: [...repairs, ...releases] }
}

/** The copy to plan for: the local one, or else the most recent one. */
const modelOf = (view: RepairView, responses: Responses): HeldCopy | undefined => {
  const mine = responses.get(view.node_id)
  if (mine !== undefined && mine.kind !== "tombstone") return mine
  let model: HeldCopy | undefined
  for (const copy of responses.values()) {
    if (copy === undefined || copy.kind === "tombstone") continue
    const is_younger = model === undefined || copy.put_at > model.put_at
    const is_preferred = copy.put_at === model?.put_at && copy.kind === "whole"
    if (is_younger || is_preferred) model = copy
  }
  return model
}

/** The time of the latest put of the same bytes among the copies. */
const lastPutOf = (responses: Responses, { put_at }: HeldCopy) => {
  let newest = put_at
  for (const copy of responses.values()) {
    if (copy !== undefined && copy.kind !== "tombstone" && copy.put_at > newest) {
      newest = copy.put_at
    }
  }
  return newest
}

/** The plan of this node for the blob. */
export const planFor = (view: RepairView, responses: Responses): Plan => {
  const { node_id } = view
  const mine = responses.get(node_id)
  const copy = modelOf(view, responses)
  if (copy === undefined) return nothing
  const put_at = lastPutOf(responses, copy)
  const deleted_at = deletionAfter(responses, put_at)
  if (deleted_at !== undefined) {
    return mine === copy ? { ...nothing, actions: [{ kind: "delete", deleted_at }] } : nothing
  }
  const model = { ...copy, put_at }
  // The rest is planned once this copy is renewed to the last put.
  if (mine === copy && copy.put_at < put_at)
    return { ...early, actions: renewals([node_id], model) }
  if (model.kind === "shard") return planShards(view, responses, model)
  // A whole copy of an erasure coded blob: nodes neither make nor spread such copies.
  if (isErasureCode(model.policy)) return nothing
  const shard = responses.values().find((one) => one?.kind === "shard")
  if (shard?.kind !== "shard") return planWhole(view, responses, model)
  const whole = mine === copy ? model : undefined
  const mixed = planMixed(view, responses, whole, { ...shard, put_at })
  return mixed ?? planWhole(view, responses, model)
}

/**
 * Whether all nodes must be surveyed, because another node stands in for one that refuses the blob.
 */
export const needsAllNodes = (responses: Responses, { put_at }: HeldCopy) =>
  responses.keys().some((node_id) => copyStateOf(responses, node_id, put_at) === "refuses")
