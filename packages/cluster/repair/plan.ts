/**
 * What is to be done for one blob, given what every node says that it has: pure. Whoever holds a
 * copy plans for it, and all plan alike, so that one of them acts and the others wait.
 *
 * Source: document 1 §1, §3 leave; DECISIONS, document 1, graceful leave, delete and replicas,
 * placement of the receiving node; decision 0125.
 */
import type { HeldCopy } from "#actors/blob-storage/node-engine.ts"
import { isErasureCode, nodes_needed } from "#actors/blob-storage/replication.ts"
import { planBeside, planShards } from "./plan-shards.ts"
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
  renewals,
  type Standing,
  standingOf,
  takersOf,
} from "./view.ts"

/** The youngest deletion that meant every node, where it is younger than the last put. */
const deletionAfter = (answers: Answers, put_at: bigint) => {
  let newest: bigint | undefined
  for (const copy of answers.values()) {
    if (copy?.kind !== "tombstone" || !copy.is_cluster_wide) continue
    if (copy.deleted_at >= put_at && copy.deleted_at > (newest ?? -1n)) newest = copy.deleted_at
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
  const keepers = owners.filter((owner) => standingOf(answers, owner, mine.put_at) === "whole")
  const is_last = keepers.length === 1
  const release: Act = { act: "release", stored_at: mine.stored_at, keepers, is_last }
  // A leaving node goes with what there is; where all others refuse the copy, it stays for good.
  if (view.is_leaving) return keepers.length > 0 ? [release] : []
  const is_safe = keepers.length === nodes_needed[mine.policy]
  return is_safe && isReleasable(view, mine) ? [release] : []
}

const planWhole = (view: RepairView, answers: Answers, model: HeldCopy): Plan => {
  const { node_id } = view
  const { put_at, policy } = model
  const owners = takersOf(view, answers, model, nodes_needed[policy])
  const those = (wanted: Standing) =>
    owners.filter((owner) => standingOf(answers, owner, put_at) === wanted)
  const lacking = those("empty")
  const older = those("older")
  const has = answers
    .keys()
    .filter((node) => standingOf(answers, node, put_at) === "whole")
    .toArray()
  const holders = [...those("whole"), ...has.filter((node) => !owners.includes(node)).sort()]
  const rank = holders.indexOf(node_id)
  const gaps = lacking.length + older.length
  const told = { ...nothing, gaps, is_known: those("unknown").length === 0 }
  if (rank < 0) {
    const is_mine = lacking.includes(node_id)
    return is_mine ? { ...told, acts: [{ act: "pull", from: holders }] } : told
  }
  if (isSettling(view, model)) return early
  const is_displaced = !owners.includes(node_id)
  const push = (to: string): Act => ({ act: "push", to, is_migration: is_displaced })
  const is_turn = isTurn(view.round, rank)
  const repairs = is_turn ? [...lacking.map(push), ...renewals(older, model)] : []
  const may_part = is_displaced && told.is_known && gaps === 0
  const partings = may_part ? parting(view, answers, model, owners) : []
  return { ...told, is_displaced, acts: [...repairs, ...partings] }
}

/** The copy that the plan is made for: the one here, else the youngest that anybody has. */
const modelOf = (view: RepairView, answers: Answers): HeldCopy | undefined => {
  const mine = answers.get(view.node_id)
  if (mine !== undefined && mine.kind !== "tombstone") return mine
  let model: HeldCopy | undefined
  for (const copy of answers.values()) {
    if (copy === undefined || copy.kind === "tombstone") continue
    const is_younger = model === undefined || copy.put_at > model.put_at
    const is_fuller = copy.put_at === model?.put_at && copy.kind === "whole"
    if (is_younger || is_fuller) model = copy
  }
  return model
}

/** When the same bytes were put last, by the copies that there are. */
const lastPutOf = (answers: Answers, { put_at }: HeldCopy) => {
  let newest = put_at
  for (const copy of answers.values()) {
    if (copy !== undefined && copy.kind !== "tombstone" && copy.put_at > newest) {
      newest = copy.put_at
    }
  }
  return newest
}

/** What this node has to do for the blob. */
export const planFor = (view: RepairView, answers: Answers): Plan => {
  const { node_id } = view
  const mine = answers.get(node_id)
  const copy = modelOf(view, answers)
  if (copy === undefined) return nothing
  const put_at = lastPutOf(answers, copy)
  const deleted_at = deletionAfter(answers, put_at)
  if (deleted_at !== undefined) {
    return mine === copy ? { ...nothing, acts: [{ act: "delete", deleted_at }] } : nothing
  }
  const model = { ...copy, put_at }
  // The rest is planned when this copy is as good as the last put's.
  if (mine === copy && copy.put_at < put_at) return { ...early, acts: renewals([node_id], model) }
  if (model.kind === "shard") return planShards(view, answers, model)
  // Whole, though it is to be in shards: nobody makes such a copy, and nobody spreads one.
  if (isErasureCode(model.policy)) return nothing
  const shard = answers.values().find((one) => one?.kind === "shard")
  if (shard?.kind !== "shard") return planWhole(view, answers, model)
  const whole = mine === copy ? model : undefined
  const coded = planBeside(view, answers, whole, { ...shard, put_at })
  return coded ?? planWhole(view, answers, model)
}

/** Whether all nodes matter: one stands in for who refuses. */
export const concernsAll = (answers: Answers, { put_at }: HeldCopy) =>
  answers.keys().some((node_id) => standingOf(answers, node_id, put_at) === "refuses")
