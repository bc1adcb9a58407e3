/**
 * What is to be done for an erasure coded blob, given who has which of its shards: pure.
 *
 * A shard is not tied to a place among the owners. Owners without one get those that nobody has, or
 * that only a node has which is no owner any more; two owners with the same shard are one too many.
 *
 * Source: document 1 §2 Replication policies; DECISIONS, document 1, graceful leave; decision 0125.
 */

import type { HeldCopy } from "#actors/blob-storage/node-engine.ts"
import { isErasureCode } from "#actors/blob-storage/replication.ts"
import { parity_shards } from "#erasure"
import {
  type Act,
  type Answers,
  early,
  isReleasable,
  isSettling,
  isTurn,
  type MissingShard,
  nothing,
  type Plan,
  type RepairView,
  renewals,
  standingOf,
  takersOf,
} from "./view.ts"

/** Shards of one rebuild: as many as may be lost. */
const rebuild_max = parity_shards

/** After so many sweeps in vain an owner that says nothing is not waited for. */
const patience_rounds = 3

/** Clocks differ by less. */
const skew_ns = 60n * 1_000_000_000n

/** Who has what of one blob. */
interface Census {
  readonly view: RepairView
  readonly answers: Answers
  readonly model: HeldCopy
  readonly data_shards: number
  readonly total: number
  readonly owners: ReadonlyArray<string>
  /** Owners that have nothing and would take a shard. */
  readonly empty: ReadonlyArray<string>
  readonly unknown: ReadonlyArray<string>
  /** Who has each shard: the owners in their order, then the others by name. */
  readonly holders: ReadonlyMap<number, ReadonlyArray<string>>
  /** Shards that no owner has, and that have room. */
  readonly missing: ReadonlyArray<number>
}

const indexOf = (answers: Answers, node_id: string, data_shards: number) => {
  const copy = answers.get(node_id)
  if (copy === undefined || copy.kind === "tombstone") return undefined
  return copy.shard?.data_shards === data_shards ? copy.shard.index : undefined
}

const censusOf = (view: RepairView, answers: Answers, model: HeldCopy): Census => {
  const data_shards = model.shard?.data_shards ?? 0
  const total = data_shards + parity_shards
  const owners = takersOf(view, answers, model, total)
  const those = (wanted: string) =>
    owners.filter((owner) => standingOf(answers, owner, model.put_at) === wanted)
  const others = [...answers.keys()].filter((node) => !owners.includes(node)).sort()
  const holders = new Map<number, Array<string>>()
  for (const node of [...owners, ...others]) {
    const index = indexOf(answers, node, data_shards)
    if (index === undefined) continue
    holders.set(index, [...(holders.get(index) ?? []), node])
  }
  const isAtOwner = (index: number) => owners.includes(holders.get(index)?.[0] ?? "")
  const missing = Array.from({ length: total }, (_, index) => index).filter(
    (index) => !isAtOwner(index),
  )
  // A whole copy answers for one of them.
  const open = missing.slice(0, Math.max(0, missing.length - those("whole").length))
  return {
    view,
    answers,
    model,
    data_shards,
    total,
    owners,
    holders,
    empty: those("empty"),
    unknown: those("unknown"),
    missing: open,
  }
}

/** Which shard goes to which owner: everybody pairs them alike. */
const pairsOf = ({ missing, empty }: Census): ReadonlyArray<MissingShard> =>
  empty.flatMap((node_id, at) => {
    const index = missing[at]
    return index === undefined ? [] : [{ index, node_id }]
  })

/** Sends on what an owner is to have and only others have, this node for one. */
const movesOf = ({ view, holders }: Census, pairs: ReadonlyArray<MissingShard>) =>
  pairs.flatMap(({ index, node_id }): ReadonlyArray<Act> => {
    const rank = holders.get(index)?.indexOf(view.node_id) ?? -1
    if (!isTurn(view.round, rank)) return []
    return [{ act: "push", to: node_id, is_migration: true }]
  })

/** Makes what nobody has. */
const rebuildsOf = (census: Census, pairs: ReadonlyArray<MissingShard>): ReadonlyArray<Act> => {
  const { view, answers, holders, data_shards, unknown } = census
  const lost = pairs.filter(({ index }) => !holders.has(index))
  if (lost.length === 0 || holders.size < data_shards) return []
  const may_wait = view.round === 0 || view.round % patience_rounds !== 0
  // Who says nothing may have what seems to be lost.
  if (unknown.length > 0 && may_wait) return []
  const able = [...holders.keys()].sort((one, other) => one - other)
  const nodes = able.flatMap((index) => holders.get(index) ?? [])
  const has_mine = indexOf(answers, view.node_id, data_shards) !== undefined
  if (has_mine ? !isTurn(view.round, nodes.indexOf(view.node_id)) : view.round > 0) return []
  const acts: Array<Act> = []
  for (let at = 0; at < lost.length; at += rebuild_max) {
    acts.push({ act: "rebuild", missing: lost.slice(at, at + rebuild_max) })
  }
  return acts
}

/** Has the shards of older puts take over the last one's time. */
const renewalsOf = (census: Census): ReadonlyArray<Act> => {
  const { view, holders, model } = census
  const nodes = [...holders.keys()]
    .sort((one, other) => one - other)
    .flatMap((index) => holders.get(index) ?? [])
  const young = nodes.filter((node) => isYoung(census, node))
  if (!isTurn(view.round, young.indexOf(view.node_id))) return []
  return renewals(
    nodes.filter((node) => !young.includes(node)),
    model,
  )
}

/** Shards that a put has left which nobody answered for, and which can make no blob. */
const isOrphan = ({ view, answers, model, holders, data_shards }: Census) => {
  const { now, whole_since, active, leaving, release_after_ns } = view
  if (holders.size >= data_shards || whole_since === undefined) return false
  const is_old = [model.put_at, model.stored_at].every((at) => now - at >= release_after_ns)
  // Where a node has gone since, it may have taken the others with it, and come back.
  const is_seen = model.put_at - skew_ns > whole_since && model.stored_at > whole_since
  // A whole copy of another policy is no part of what the shards were to be.
  const is_alone = [...active, ...leaving].every((node) => {
    const copy = answers.get(node)
    return answers.has(node) && !(copy?.kind === "whole" && isErasureCode(copy.policy))
  })
  return is_old && is_seen && is_alone
}

/** Whether a node has its shard by the put that the blob is of. */
const isYoung = ({ answers, model }: Census, node_id: string) =>
  standingOf(answers, node_id, model.put_at) === "shard"

/** Whether the blob is as safe at its owners as they can make it. */
const isPlaced = (census: Census) => {
  const { view, owners, empty, unknown, holders, total, data_shards } = census
  if (empty.length > 0 || unknown.length > 0) return false
  const is_old = holders.values().some((nodes) => !nodes.every((node) => isYoung(census, node)))
  // Who leaves goes with what there is.
  if (is_old && !view.is_leaving) return false
  const at_owners = holders
    .values()
    .filter(([first = ""]) => owners.includes(first))
    .toArray()
  if (!view.is_leaving) return owners.length === total && at_owners.length === total
  // Two owners with the same shard: one of them will have room for another.
  const are_distinct = at_owners.every(
    (nodes) => nodes.filter((node) => owners.includes(node)).length === 1,
  )
  return are_distinct && at_owners.length >= data_shards
}

/** Whether the shards that others have, all of them together, are no more than it takes. */
const isLast = ({ view, holders, data_shards }: Census) => {
  const others = holders.values().filter((nodes) => nodes.some((node) => node !== view.node_id))
  return others.toArray().length <= data_shards
}

/** How this node's own shard is let go, if it has its place elsewhere. */
const partingOf = (census: Census, index: number): ReadonlyArray<Act> => {
  const { view, model, owners, holders } = census
  const { stored_at } = model
  const [first = ""] = holders.get(index) ?? []
  if (owners.includes(view.node_id)) {
    if (!isYoung(census, first)) return []
    if (first === view.node_id) return []
    return [{ act: "release", stored_at, keepers: [first], is_last: isLast(census) }]
  }
  if (!isPlaced(census) || !(view.is_leaving || isReleasable(view, model))) return []
  const keepers = holders
    .values()
    .flatMap((nodes) => nodes.filter((node) => owners.includes(node)))
    .toArray()
  return [{ act: "release", stored_at, keepers, is_last: isLast(census) }]
}

/**
 * What is to be done for a blob of which there are whole copies and shards: somebody put it with an
 * erasure code that others could not know of. It is erasure coded, and a whole copy goes once all
 * shards are where they belong. Undefined where they make no blob. `mine` is the whole copy here.
 */
export const planBeside = (
  view: RepairView,
  answers: Answers,
  mine: HeldCopy | undefined,
  shard: HeldCopy,
): Plan | undefined => {
  const census = censusOf(view, answers, shard)
  const { owners, unknown, holders, data_shards } = census
  if (holders.size < data_shards) return undefined
  if (mine === undefined) return planShards(view, answers, shard)
  // An owner's whole copy is as good as its shard.
  if (owners.includes(view.node_id)) return { ...nothing, is_known: unknown.length === 0 }
  const may_part = isPlaced(census) && (view.is_leaving || isReleasable(view, mine))
  const release: Act = {
    act: "release",
    stored_at: mine.stored_at,
    keepers: [...holders.values()].flat().filter((node) => owners.includes(node)),
    is_last: isLast(census),
  }
  return {
    ...nothing,
    is_displaced: true,
    is_known: unknown.length === 0,
    acts: may_part ? [release] : [],
  }
}

/** What this node has to do for the blob of which `model` is a shard, its own if it has one. */
export const planShards = (view: RepairView, answers: Answers, model: HeldCopy): Plan => {
  const census = censusOf(view, answers, model)
  const { unknown, owners, data_shards } = census
  const mine = indexOf(answers, view.node_id, data_shards)
  if (mine !== undefined && isSettling(view, model)) return early
  const pairs = pairsOf(census)
  const told = { ...nothing, gaps: pairs.length, is_known: unknown.length === 0 }
  if (mine === undefined) return { ...told, acts: rebuildsOf(census, pairs) }
  const is_displaced = !owners.includes(view.node_id)
  if (isOrphan(census)) {
    // Who leaves waits until it may go.
    const orphaned = { ...told, gaps: 0, is_displaced: view.is_leaving }
    return { ...orphaned, acts: [{ act: "forsake", stored_at: model.stored_at }] }
  }
  const repairs = [...movesOf(census, pairs), ...rebuildsOf(census, pairs), ...renewalsOf(census)]
  return { ...told, is_displaced, acts: [...repairs, ...partingOf(census, mine)] }
}
