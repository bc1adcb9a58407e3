/**
 * Repairs a batch of blobs: surveys all nodes, plans each blob, and runs the actions.
 *
 * Source: decision 0125.
 */

import type { Copy, Deletion, HeldCopy } from "#actors/blob-storage/ports/node-engine.ts"
import type { Members, Peer } from "#actors/blob-storage/ports/peers.ts"
import type { BlobId } from "#schemas/blob-storage/blob.ts"
import { nodes_needed } from "#schemas/blob-storage/replication.ts"
import { ownersOf as activeOwners } from "../erasure/layout.ts"
import type { Actions, BlobSurvey, RepairParts } from "./actions.ts"
import { deletionTargets, missingDeletions } from "./deletions.ts"
import { isDiscard, makeDiscards } from "./discard.ts"
import { needsAllNodes, planFor } from "./plan.ts"
import type { Pace } from "./rate.ts"
import type { ReleaseCandidate, Releases } from "./release.ts"
import type { Action, Plan, RepairView } from "./view.ts"

/**
 * Concurrent actions. Small copies wait for disk syncs rather than bandwidth, so more of them run.
 */
const parallel_max = 16
const small_parallel_max = 64
/** Maximum size of a small copy. */
const small_bytes_max = 65_536

/** Bytes that one lookup costs, both ways. */
const lookup_bytes = 200

/** The result of a batch. */
export interface BatchSum {
  actions: number
  /** Blobs with owners that still lack a copy. */
  missing: number
  misplaced: number
  /** Blobs that a put may still be storing. */
  settling: number
  /** False if a node did not respond or an action failed. */
  is_complete: boolean
}

export const emptySum = (): BatchSum => ({
  actions: 0,
  missing: 0,
  misplaced: 0,
  settling: 0,
  is_complete: true,
})

/** A blob of the batch and its result. */
export interface Inspected {
  readonly id: BlobId
  readonly is_done: boolean
  /** A put may still be storing it. */
  readonly is_early: boolean
}

/** The state of the cluster and of the sweep that a batch runs in. */
export interface BatchContext {
  readonly members: Members
  readonly sweep_number: number
  readonly release_after_ns: bigint
}

export const viewOf = (context: BatchContext, now: bigint): RepairView => ({
  ...viewOfMembers(context.members),
  now,
  sweep_number: context.sweep_number,
  all_online_since: context.members.all_online_since,
  release_after_ns: context.release_after_ns,
})

const viewOfMembers = (members: Members) => ({
  node_id: members.node_id,
  active: members.active.map(({ node_id }) => node_id),
  leaving: members.leaving.map(({ node_id }) => node_id),
  is_leaving: members.is_leaving,
  ownersOf: (id: BlobId, count: number) =>
    activeOwners(members, id, count).map(({ node_id }) => node_id),
})

const inParallel = async <A>(
  items: ReadonlyArray<A>,
  run: (item: A) => Promise<void>,
  length = parallel_max,
) => {
  const rest = items.values()
  const worker = async () => {
    for (const item of rest) await run(item)
  }
  await Promise.all(Array.from({ length }, worker))
}

/** Looks up copies on peers. Peers that do not respond are missing from the result. */
const makeLookups = ({ peers }: Pick<RepairParts, "peers">, pace: Pace) => {
  type NodeResponse = ReadonlyMap<BlobId, Copy | undefined>
  const lookUp = async (
    peer: Peer,
    ids: ReadonlyArray<BlobId>,
  ): Promise<NodeResponse | undefined> => {
    await pace(ids.length * lookup_bytes)
    const copies = await peers.copiesOf(peer, ids).catch(() => undefined)
    return copies && new Map(ids.map((id, at) => [id, copies[at]]))
  }
  return async (ids_by_peer: ReadonlyMap<Peer, ReadonlyArray<BlobId>>) => {
    const responses = new Map<string, NodeResponse>()
    await inParallel([...ids_by_peer], async ([peer, ids]) => {
      const response = ids.length === 0 ? undefined : await lookUp(peer, ids)
      if (response !== undefined) responses.set(peer.node_id, response)
    })
    return responses
  }
}

type Lookups = ReturnType<typeof makeLookups>
type AllResponses = Awaited<ReturnType<Lookups>>

const isHeld = (copy: Copy | undefined): copy is HeldCopy =>
  copy !== undefined && copy.kind !== "tombstone"

/** A blob and its local copy. */
export type Entry = readonly [BlobId, Copy | undefined]

/** The blobs to look up on each peer. */
const idsByPeer = ({ members }: BatchContext, view: RepairView, entries: ReadonlyArray<Entry>) => {
  const others = [...members.active, ...members.leaving].filter(
    ({ node_id }) => node_id !== members.node_id,
  )
  const ids_by_peer = new Map<Peer, Array<BlobId>>(others.map((peer) => [peer, []]))
  for (const [id, copy] of entries) {
    const is_for_all = view.sweep_number === 0 || copy?.kind !== "whole"
    const owners = is_for_all ? [] : view.ownersOf(id, nodes_needed[copy.policy])
    for (const [peer, ids] of ids_by_peer) {
      if (is_for_all || owners.includes(peer.node_id)) ids.push(id)
    }
  }
  return ids_by_peer
}

const surveyOf = (view: RepairView, all: AllResponses, [id, mine]: Entry): BlobSurvey => {
  const responses = new Map<string, Copy | undefined>([[view.node_id, mine]])
  for (const [node_id, copies] of all) {
    if (copies.has(id)) responses.set(node_id, copies.get(id))
  }
  return { id, copy: isHeld(mine) ? mine : undefined, responses, surveyed_at: view.now }
}

/** The size of a blob without a local copy is unknown. */
const isSmall = ({ copy }: BlobSurvey) => copy !== undefined && copy.size <= small_bytes_max

interface Task {
  readonly survey: BlobSurvey
  readonly plan: Plan
  made: number
  is_done: boolean
}

const isRelease = (action: Action): action is Action & { kind: "release" } =>
  action.kind === "release"

const candidatesOf = (tasks: ReadonlyArray<Task>) =>
  tasks.flatMap(({ survey, plan }): ReadonlyArray<ReleaseCandidate> => {
    const release = plan.actions.find(isRelease)
    if (release === undefined || survey.copy === undefined) return []
    const { keepers, is_last } = release
    return [{ copy: survey.copy, keepers, is_last }]
  })

/** Surveys each blob on the nodes that survey for it. */
const makeSurvey = (lookUpAll: Lookups) =>
  async function surveyAll(context: BatchContext, view: RepairView, entries: ReadonlyArray<Entry>) {
    const responses = await lookUpAll(idsByPeer(context, view, entries))
    const surveys = entries.map((entry) => surveyOf(view, responses, entry))
    const refused = entries.filter((_, at) => {
      const { copy, responses: reported } = surveys[at] ?? {}
      return copy !== undefined && reported !== undefined && needsAllNodes(reported, copy)
    })
    if (refused.length === 0) return surveys
    const all = await lookUpAll(idsByPeer(context, { ...view, sweep_number: 0 }, refused))
    const again = new Map(refused.map((entry) => [entry[0], surveyOf(view, all, entry)]))
    return surveys.map((survey) => again.get(survey.id) ?? survey)
  }

/**
 * Runs the actions of all tasks in parallel, except releases and discards, which other nodes must
 * confirm first.
 */
const runActions = async (actions: Actions, tasks: ReadonlyArray<Task>) => {
  const todo = tasks.flatMap((task) => task.plan.actions.map((action) => ({ task, action })))
  const runOne = async ({ task, action }: (typeof todo)[number]) => {
    if (isRelease(action) || isDiscard(action)) return
    const outcome = await actions.run(action, task.survey)
    task.made += outcome.succeeded
    if (!outcome.is_done) task.is_done = false
  }
  const small = todo.filter(({ task }) => isSmall(task.survey))
  const large = todo.filter(({ task }) => !isSmall(task.survey))
  await inParallel(small, runOne, small_parallel_max)
  await inParallel(large, runOne)
  return todo.length
}

/** Sends cluster-wide deletions to nodes that do not know them. */
const makeDeletionSpread = (lookUpAll: Lookups, actions: Actions) =>
  async function spread(context: BatchContext, deletions: ReadonlyArray<Deletion>, sum: BatchSum) {
    if (deletions.length === 0) return
    const ids = deletions.map(({ id }) => id)
    const others = deletionTargets(context.members, context.sweep_number)
    const responses = await lookUpAll(new Map(others.map((peer) => [peer, ids])))
    await inParallel(others, async (peer) => {
      const known = responses.get(peer.node_id)
      const reported = ids.map((id) => known?.get(id))
      const missing = known === undefined ? undefined : missingDeletions(deletions, reported)
      sum.actions += missing?.length ?? 0
      if (missing === undefined || !(await actions.sendDeletions(peer, missing)))
        sum.is_complete = false
    })
  }

/** Discards shards of unfinished puts if they certainly belong to no blob; returns their ids. */
const makeDiscarding = (
  parts: RepairParts,
  actions: Actions,
  surveyAll: ReturnType<typeof makeSurvey>,
) => {
  const mayDiscard = makeDiscards(parts)
  return async function discard(
    context: BatchContext,
    view: RepairView,
    tasks: ReadonlyArray<Task>,
  ) {
    const candidates = tasks.flatMap(({ survey, plan }) => {
      const action = plan.actions.find(isDiscard)
      return action === undefined ? [] : [{ survey, action }]
    })
    const confirmed = await mayDiscard(
      context.members,
      view,
      candidates.map(({ survey }) => survey),
      (surveys) =>
        surveyAll(
          context,
          view,
          surveys.map(({ id, copy }) => [id, copy]),
        ),
    )
    const ids = new Set(confirmed.map(({ id }) => id))
    for (const { survey, action } of candidates)
      if (ids.has(survey.id)) await actions.run(action, survey)
    return ids
  }
}

export const makeBatches = (
  parts: RepairParts,
  actions: Actions,
  releases: Releases,
  pace: Pace,
) => {
  const lookUpAll = makeLookups(parts, pace)
  const surveyAll = makeSurvey(lookUpAll)
  const discard = makeDiscarding(parts, actions, surveyAll)

  const release = (tasks: ReadonlyArray<Task>, ring_version: number) => {
    const candidates = candidatesOf(tasks)
    return candidates.length === 0 ? new Set<BlobId>() : releases.release(candidates, ring_version)
  }
  /** Surveys these blobs and runs their plans. */
  const run = async (
    context: BatchContext,
    entries: ReadonlyArray<Entry>,
    sum: BatchSum,
  ): Promise<ReadonlyArray<Inspected>> => {
    const view = viewOf(context, parts.timing.now())
    const surveys = await surveyAll(context, view, entries)
    const tasks = surveys.map((survey): Task => {
      return { survey, plan: planFor(view, survey.responses), made: 0, is_done: true }
    })
    sum.actions += await runActions(actions, tasks)
    const discarded = await discard(context, view, tasks)
    const gone = discarded.union(await release(tasks, context.members.ring_version))
    for (const { survey, plan, made, is_done } of tasks) {
      if (made < plan.gaps) sum.missing += 1
      if (plan.is_displaced && !gone.has(survey.id)) sum.misplaced += 1
      if (plan.is_early) sum.settling += 1
      if (!plan.is_known || !is_done) sum.is_complete = false
    }
    return tasks.map(({ survey: { id }, plan, made, is_done }) => {
      const is_all = plan.is_known && !plan.is_early && made >= plan.gaps
      return { id, is_done: is_done && is_all, is_early: plan.is_early }
    })
  }
  return { run, spread: makeDeletionSpread(lookUpAll, actions) }
}

export type Batches = ReturnType<typeof makeBatches>
