/**
 * Plans the repair of an erasure coded blob from the shards that all nodes report. Pure.
 *
 * A shard is not tied to a position among the owners. Owners without a shard get one that is lost
 * or that only a former owner has. Of two owners with the same shard, one releases it.
 *
 * Source: document 1 §2 Replication policies; DECISIONS, document 1, graceful leave; decision 0125.
 */

import type { HeldCopy } from "#actors/blob-storage/ports/node-engine.ts"
import { parity_shards } from "#erasure"
import { isErasureCode } from "#schemas/blob-storage/replication.ts"
import {
  type Action,
  acceptingOwners,
  copyStateOf,
  early,
  isReleasable,
  isSettling,
  isTurn,
  type MissingShard,
  nothing,
  type Plan,
  type RepairView,
  type Responses,
  renewals,
} from "./view.ts"

/** Maximum number of shards in one rebuild: as many as may be lost. */
const rebuild_max = parity_shards

/** Every third sweep no longer waits for owners that do not respond. */
const unknown_owner_sweeps = 3

/** Upper bound of the difference between the clocks of two nodes. */
const skew_ns = 60n * 1_000_000_000n

/** The shards of one blob and their nodes. */
interface Census {
  readonly view: RepairView
  readonly responses: Responses
  readonly model: HeldCopy
  readonly data_shards: number
  readonly total: number
  readonly owners: ReadonlyArray<string>
  /** Owners without a shard that accept one. */
  readonly empty: ReadonlyArray<string>
  readonly unknown: ReadonlyArray<string>
  /** The nodes with each shard: owners in order, then other nodes by name. */
  readonly holders: ReadonlyMap<number, ReadonlyArray<string>>
  /** Shards that no owner has, and for which an owner has room. */
  readonly missing: ReadonlyArray<number>
}

const indexOf = (responses: Responses, node_id: string, data_shards: number) => {
  const copy = responses.get(node_id)
  if (copy === undefined || copy.kind === "tombstone") return undefined
  return copy.shard?.data_shards === data_shards ? copy.shard.index : undefined
}

const censusOf = (view: RepairView, responses: Responses, model: HeldCopy): Census => {
  const data_shards = model.shard?.data_shards ?? 0
  const total = data_shards + parity_shards
  const owners = acceptingOwners(view, responses, model, total)
  const ownersIn = (wanted: string) =>
    owners.filter((owner) => copyStateOf(responses, owner, model.put_at) === wanted)
  const others = [...responses.keys()].filter((node) => !owners.includes(node)).sort()
  const holders = new Map<number, Array<string>>()
  for (const node of [...owners, ...others]) {
    const index = indexOf(responses, node, data_shards)
    if (index === undefined) continue
    holders.set(index, [...(holders.get(index) ?? []), node])
  }
  const isAtOwner = (index: number) => owners.includes(holders.get(index)?.[0] ?? "")
  const missing = Array.from({ length: total }, (_, index) => index).filter(
    (index) => !isAtOwner(index),
  )
  // A whole copy counts as one of them.
  const open = missing.slice(0, Math.max(0, missing.length - ownersIn("whole").length))
  return {
    view,
    responses,
    model,
    data_shards,
    total,
    owners,
    holders,
    empty: ownersIn("empty"),
    unknown: ownersIn("unknown"),
    missing: open,
  }
}

/** Pairs missing shards with owners; all nodes compute the same pairs. */
const pairsOf = ({ missing, empty }: Census): ReadonlyArray<MissingShard> =>
  empty.flatMap((node_id, at) => {
    const index = missing[at]
    return index === undefined ? [] : [{ index, node_id }]
  })

/** Sends shards that an owner needs and only other nodes have, one of which is this node. */
const movesOf = ({ view, holders }: Census, pairs: ReadonlyArray<MissingShard>) =>
  pairs.flatMap(({ index, node_id }): ReadonlyArray<Action> => {
    const rank = holders.get(index)?.indexOf(view.node_id) ?? -1
    if (!isTurn(view.sweep_number, rank)) return []
    return [{ kind: "push", to: node_id, is_migration: true }]
  })

/** Rebuilds shards that no node has. */
const rebuildsOf = (census: Census, pairs: ReadonlyArray<MissingShard>): ReadonlyArray<Action> => {
  const { view, responses, holders, data_shards, unknown } = census
  const lost = pairs.filter(({ index }) => !holders.has(index))
  if (lost.length === 0 || holders.size < data_shards) return []
  const is_waiting = view.sweep_number === 0 || view.sweep_number % unknown_owner_sweeps !== 0
  // A node that does not respond may have the shard.
  if (unknown.length > 0 && is_waiting) return []
  const with_shard = [...holders.keys()].sort((one, other) => one - other)
  const nodes = with_shard.flatMap((index) => holders.get(index) ?? [])
  const has_mine = indexOf(responses, view.node_id, data_shards) !== undefined
  if (has_mine ? !isTurn(view.sweep_number, nodes.indexOf(view.node_id)) : view.sweep_number > 0)
    return []
  const actions: Array<Action> = []
  for (let at = 0; at < lost.length; at += rebuild_max) {
    actions.push({ kind: "rebuild", missing: lost.slice(at, at + rebuild_max) })
  }
  return actions
}

/** Renews the shards of older puts to the last put. */
const renewalsOf = (census: Census): ReadonlyArray<Action> => {
  const { view, holders, model } = census
  const nodes = [...holders.keys()]
    .sort((one, other) => one - other)
    .flatMap((index) => holders.get(index) ?? [])
  const current = nodes.filter((node) => isCurrent(census, node))
  if (!isTurn(view.sweep_number, current.indexOf(view.node_id))) return []
  return renewals(
    nodes.filter((node) => !current.includes(node)),
    model,
  )
}

/** Whether these are shards of an unfinished put that cannot make a blob. */
const isOrphan = ({ view, responses, model, holders, data_shards }: Census) => {
  const { now, all_online_since, active, leaving, release_after_ns } = view
  if (holders.size >= data_shards || all_online_since === undefined) return false
  const is_old = [model.put_at, model.stored_at].every((at) => now - at >= release_after_ns)
  // A node that left since may have taken the other shards with it, and may come back.
  const is_seen = model.put_at - skew_ns > all_online_since && model.stored_at > all_online_since
  // A whole copy with a replication policy is unrelated to the shards.
  const is_alone = [...active, ...leaving].every((node) => {
    const copy = responses.get(node)
    return responses.has(node) && !(copy?.kind === "whole" && isErasureCode(copy.policy))
  })
  return is_old && is_seen && is_alone
}

/** Whether the node's shard belongs to the last put. */
const isCurrent = ({ responses, model }: Census, node_id: string) =>
  copyStateOf(responses, node_id, model.put_at) === "shard"

/** Whether the owners hold as many shards as they can. */
const isPlaced = (census: Census) => {
  const { view, owners, empty, unknown, holders, total, data_shards } = census
  if (empty.length > 0 || unknown.length > 0) return false
  const is_old = holders.values().some((nodes) => !nodes.every((node) => isCurrent(census, node)))
  // A leaving node settles for the shards that exist.
  if (is_old && !view.is_leaving) return false
  const at_owners = holders
    .values()
    .filter(([first = ""]) => owners.includes(first))
    .toArray()
  if (!view.is_leaving) return owners.length === total && at_owners.length === total
  // Of two owners with the same shard, one will have room for another.
  const are_distinct = at_owners.every(
    (nodes) => nodes.filter((node) => owners.includes(node)).length === 1,
  )
  return are_distinct && at_owners.length >= data_shards
}

/** Whether the other nodes together have no more distinct shards than a read needs. */
const isLastNeeded = ({ view, holders, data_shards }: Census) => {
  const others = holders.values().filter((nodes) => nodes.some((node) => node !== view.node_id))
  return others.toArray().length <= data_shards
}

/** Releases the local shard if it belongs elsewhere. */
const releaseIfMisplaced = (census: Census, index: number): ReadonlyArray<Action> => {
  const { view, model, owners, holders } = census
  const { stored_at } = model
  const [first = ""] = holders.get(index) ?? []
  if (owners.includes(view.node_id)) {
    if (!isCurrent(census, first)) return []
    if (first === view.node_id) return []
    return [{ kind: "release", stored_at, keepers: [first], is_last: isLastNeeded(census) }]
  }
  if (!isPlaced(census) || !(view.is_leaving || isReleasable(view, model))) return []
  const keepers = holders
    .values()
    .flatMap((nodes) => nodes.filter((node) => owners.includes(node)))
    .toArray()
  return [{ kind: "release", stored_at, keepers, is_last: isLastNeeded(census) }]
}

/**
 * Plans a blob with whole copies and shards: a put used an erasure code without knowing of the
 * whole copies. The blob is erasure coded, and a whole copy is released once all shards are in
 * place. Returns undefined if the shards do not make a blob. `mine` is the local whole copy.
 */
export const planMixed = (
  view: RepairView,
  responses: Responses,
  mine: HeldCopy | undefined,
  shard: HeldCopy,
): Plan | undefined => {
  const census = censusOf(view, responses, shard)
  const { owners, unknown, holders, data_shards } = census
  if (holders.size < data_shards) return undefined
  if (mine === undefined) return planShards(view, responses, shard)
  // An owner's whole copy replaces its shard.
  if (owners.includes(view.node_id)) return { ...nothing, is_known: unknown.length === 0 }
  const may_release = isPlaced(census) && (view.is_leaving || isReleasable(view, mine))
  const release: Action = {
    kind: "release",
    stored_at: mine.stored_at,
    keepers: [...holders.values()].flat().filter((node) => owners.includes(node)),
    is_last: isLastNeeded(census),
  }
  return {
    ...nothing,
    is_displaced: true,
    is_known: unknown.length === 0,
    actions: may_release ? [release] : [],
  }
}

/**
 * The plan of this node for an erasure coded blob; `model` is a shard of it, the local one if any.
 */
export const planShards = (view: RepairView, responses: Responses, model: HeldCopy): Plan => {
  const census = censusOf(view, responses, model)
  const { unknown, owners, data_shards } = census
  const mine = indexOf(responses, view.node_id, data_shards)
  if (mine !== undefined && isSettling(view, model)) return early
  const pairs = pairsOf(census)
  const base = { ...nothing, gaps: pairs.length, is_known: unknown.length === 0 }
  if (mine === undefined) return { ...base, actions: rebuildsOf(census, pairs) }
  const is_displaced = !owners.includes(view.node_id)
  if (isOrphan(census)) {
    // A leaving node waits until the shard may be discarded.
    const plan = { ...base, gaps: 0, is_displaced: view.is_leaving }
    return { ...plan, actions: [{ kind: "discard", stored_at: model.stored_at }] }
  }
  const repairs = [...movesOf(census, pairs), ...rebuildsOf(census, pairs), ...renewalsOf(census)]
  return { ...base, is_displaced, actions: [...repairs, ...releaseIfMisplaced(census, mine)] }
}
