/**
 * What is to be done for one blob, given what every node says that it has: pure. Whoever holds a
 * copy plans for it, and all plan alike, so that one of them acts and the others wait.
 *
 * Source: document 1 §1, §3 leave; DECISIONS, document 1, graceful leave, delete and replicas,
 * placement of the receiving node; decision 0125.
 */
import type { HeldCopy } from "./node-engine.ts"
import { planShards } from "./repair-plan-shards.ts"
import {
  type Act,
  type Answers,
  early,
  isReleasable,
  isSettling,
  isTurn,
  nothing,
  type Plan,
  type RepairView,
  type Standing,
  standingOf,
  takersOf,
} from "./repair-view.ts"
import { isErasureCode, nodes_needed } from "./replication.ts"

/** The youngest deletion that meant every node, where it is younger than the copy. */
const deletionAfter = (answers: Answers, { created_at }: HeldCopy) => {
  let newest: bigint | undefined
  for (const copy of answers.values()) {
    if (copy?.kind !== "tombstone" || !copy.is_cluster_wide) continue
    if (copy.deleted_at >= created_at && copy.deleted_at > (newest ?? -1n)) newest = copy.deleted_at
  }
  return newest
}

/** How a copy that has its place elsewhere is let go, if it is time. */
const parting = (
  view: RepairView,
  answers: Answers,
  mine: HeldCopy,
  owners: ReadonlyArray<string>,
): ReadonlyArray<Act> => {
  const keepers = owners.filter((owner) => standingOf(answers, owner, mine.created_at) === "whole")
  const release: Act = { act: "release", stored_at: mine.stored_at, keepers }
  // A leaving node goes with what there is; where all others refuse the copy, it stays for good.
  if (view.is_leaving) return keepers.length > 0 ? [release] : []
  const is_safe = keepers.length === nodes_needed[mine.policy]
  return is_safe && isReleasable(view, mine) ? [release] : []
}

const planWhole = (view: RepairView, answers: Answers, model: HeldCopy): Plan => {
  const { node_id } = view
  const { created_at, policy } = model
  const owners = takersOf(view, answers, model, nodes_needed[policy])
  const those = (wanted: Standing) =>
    owners.filter((owner) => standingOf(answers, owner, created_at) === wanted)
  const lacking = those("empty")
  const has = answers
    .keys()
    .filter((node) => standingOf(answers, node, created_at) === "whole")
    .toArray()
  const holders = [...those("whole"), ...has.filter((node) => !owners.includes(node)).sort()]
  const rank = holders.indexOf(node_id)
  const told = { ...nothing, gaps: lacking.length, is_known: those("unknown").length === 0 }
  const mine = answers.get(node_id)
  if (mine && mine.kind !== "tombstone" && standingOf(answers, node_id, created_at) === "older") {
    // An owner's stays: what is younger may have rotted, and nobody has read it yet.
    return owners.includes(node_id) ? told : { ...told, acts: parting(view, answers, mine, owners) }
  }
  if (rank < 0) {
    const is_mine = lacking.includes(node_id)
    return is_mine ? { ...told, acts: [{ act: "pull", from: holders }] } : told
  }
  if (isSettling(view, model)) return early
  const is_displaced = !owners.includes(node_id)
  const push = (to: string): Act => ({
    ...{ act: "push", to, is_migration: is_displaced, created_at },
  })
  const pushes = isTurn(view.round, rank) ? lacking.map(push) : []
  const may_part = is_displaced && told.is_known && lacking.length === 0
  const partings = may_part ? parting(view, answers, model, owners) : []
  return { ...told, is_displaced, acts: [...pushes, ...partings] }
}

/** The copy that the plan is made for: the one here, else the youngest that anybody has. */
const modelOf = (view: RepairView, answers: Answers): HeldCopy | undefined => {
  const mine = answers.get(view.node_id)
  if (mine !== undefined && mine.kind !== "tombstone") return mine
  let model: HeldCopy | undefined
  for (const copy of answers.values()) {
    if (copy === undefined || copy.kind === "tombstone") continue
    const is_younger = model === undefined || copy.created_at > model.created_at
    const is_fuller = copy.created_at === model?.created_at && copy.kind === "whole"
    if (is_younger || is_fuller) model = copy
  }
  return model
}

/** When the blob was put, first and last, by the copies that there are. */
const putsOf = (answers: Answers, { created_at }: HeldCopy) => {
  let [oldest, newest] = [created_at, created_at]
  for (const copy of answers.values()) {
    if (copy === undefined || copy.kind === "tombstone") continue
    if (copy.created_at > newest) newest = copy.created_at
    if (copy.created_at < oldest) oldest = copy.created_at
  }
  return { oldest, newest }
}

/** Whether nobody knows of a deletion since then, and nobody is away who might. */
const isUndisputed = (view: RepairView, answers: Answers, since: bigint) => {
  const { active, leaving, whole_since } = view
  const all_said = [...active, ...leaving].every((node) => answers.has(node))
  // Of a node alone they stay where they are.
  const is_deleted = answers.values().some((copy) => {
    return copy?.kind === "tombstone" && copy.is_cluster_wide && copy.deleted_at >= since
  })
  return all_said && !is_deleted && whole_since !== undefined && whole_since <= since
}

/**
 * The put that copies have to be of. The same bytes may have been put again after a deletion that
 * an older copy has yet to hear of; where there can be none, any put will do.
 */
const putThatCounts = (view: RepairView, answers: Answers, copy: HeldCopy) => {
  const { oldest, newest } = putsOf(answers, copy)
  if (oldest === newest) return newest
  return isUndisputed(view, answers, oldest) ? oldest : newest
}

/** What this node has to do for the blob. */
export const planFor = (view: RepairView, answers: Answers): Plan => {
  const mine = answers.get(view.node_id)
  const copy = modelOf(view, answers)
  if (copy === undefined) return nothing
  const deleted_at = deletionAfter(answers, copy)
  if (deleted_at !== undefined) {
    return mine === copy ? { ...nothing, acts: [{ act: "delete", deleted_at }] } : nothing
  }
  const model = { ...copy, created_at: putThatCounts(view, answers, copy) }
  if (model.kind === "shard") return planShards(view, answers, model)
  // Whole, though it is to be in shards: nobody makes such a copy, and nobody spreads one.
  return isErasureCode(model.policy) ? nothing : planWhole(view, answers, model)
}

/** Whether all nodes matter: one stands in for who refuses, one may know of a deletion. */
export const concernsAll = (answers: Answers, { created_at }: HeldCopy) =>
  answers
    .keys()
    .some((node_id) => ["refuses", "older"].includes(standingOf(answers, node_id, created_at)))
