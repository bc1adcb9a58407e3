/**
 * Many blobs at once: everybody is asked what they have of them, a plan is made for each, and all
 * is done that is to be done.
 *
 * Source: decision 0125.
 */

import type { Copy, Deletion, HeldCopy } from "#actors/blob-storage/node-engine.ts"
import type { Members, Peer } from "#actors/blob-storage/peers.ts"
import { nodes_needed } from "#actors/blob-storage/replication.ts"
import type { BlobId } from "#schemas/blob-storage/blob.ts"
import { ownersOf as activeOwners } from "../erasure/layout.ts"
import type { Acts, Matter, RepairParts } from "./acts.ts"
import { toldIn, untold } from "./deletions.ts"
import { isForsake, makeForsakes } from "./forsake.ts"
import { concernsAll, planFor } from "./plan.ts"
import type { Pace } from "./rate.ts"
import type { Releases, ReleaseWish } from "./release.ts"
import type { Act, Plan, RepairView } from "./view.ts"

/** Copies that are sent, made or fetched at the same time: small ones wait for syncs, not bytes. */
const parallel_max = 16
const small_parallel_max = 64
/** Up to so many bytes a copy is small. */
const small_bytes_max = 65_536

/** Bytes that asking for one blob costs, both ways. */
const asked_bytes = 200

/** What became of a batch. */
export interface BatchSum {
  acts: number
  /** Copies that owners still do not have. */
  lacking: number
  displaced: number
  /** Blobs of which nothing is said yet, since a put may be at work on them. */
  early: number
  /** Somebody did not answer, or something failed. */
  is_complete: boolean
}

export const emptySum = (): BatchSum => ({
  acts: 0,
  lacking: 0,
  displaced: 0,
  early: 0,
  is_complete: true,
})

/** Blobs that are looked at again: with what came of each. */
export interface Looked {
  readonly id: BlobId
  readonly is_done: boolean
  /** A put may be at work on it: nothing is said of it yet. */
  readonly is_early: boolean
}

/** A cluster's state, as the plans of a batch see it. */
export interface Scene {
  readonly members: Members
  readonly round: number
  readonly release_after_ns: bigint
}

export const viewOf = (scene: Scene, now: bigint): RepairView => ({
  ...viewOfMembers(scene.members),
  now,
  round: scene.round,
  whole_since: scene.members.whole_since,
  release_after_ns: scene.release_after_ns,
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

/** What each peer says of those that it is asked about; a peer that does not say is not in it. */
const makeAsking = ({ peers }: Pick<RepairParts, "peers">, pace: Pace) => {
  type Said = ReadonlyMap<BlobId, Copy | undefined>
  const askOne = async (peer: Peer, ids: ReadonlyArray<BlobId>): Promise<Said | undefined> => {
    await pace(ids.length * asked_bytes)
    const said = await peers.have(peer, ids).catch(() => undefined)
    return said && new Map(ids.map((id, at) => [id, said[at]]))
  }
  return async (wanted: ReadonlyMap<Peer, ReadonlyArray<BlobId>>) => {
    const said = new Map<string, Said>()
    await inParallel([...wanted], async ([peer, ids]) => {
      const answer = ids.length === 0 ? undefined : await askOne(peer, ids)
      if (answer !== undefined) said.set(peer.node_id, answer)
    })
    return said
  }
}

type Asking = ReturnType<typeof makeAsking>
type AllSaid = Awaited<ReturnType<Asking>>

const isHeld = (copy: Copy | undefined): copy is HeldCopy =>
  copy !== undefined && copy.kind !== "tombstone"

/** A blob, and what is here of it. */
export type Entry = readonly [BlobId, Copy | undefined]

/** Who has to say something of which blob. */
const wantedOf = ({ members }: Scene, view: RepairView, entries: ReadonlyArray<Entry>) => {
  const others = [...members.active, ...members.leaving].filter(
    ({ node_id }) => node_id !== members.node_id,
  )
  const wanted = new Map<Peer, Array<BlobId>>(others.map((peer) => [peer, []]))
  for (const [id, copy] of entries) {
    const is_for_all = view.round === 0 || copy?.kind !== "whole"
    const owners = is_for_all ? [] : view.ownersOf(id, nodes_needed[copy.policy])
    for (const [peer, ids] of wanted) {
      if (is_for_all || owners.includes(peer.node_id)) ids.push(id)
    }
  }
  return wanted
}

const matterOf = (view: RepairView, said: AllSaid, [id, mine]: Entry): Matter => {
  const answers = new Map<string, Copy | undefined>([[view.node_id, mine]])
  for (const [node_id, copies] of said) {
    if (copies.has(id)) answers.set(node_id, copies.get(id))
  }
  return { id, copy: isHeld(mine) ? mine : undefined, answers, asked_at: view.now }
}

/** What is not here may be of any size. */
const isSmallMatter = ({ copy }: Matter) => copy !== undefined && copy.size <= small_bytes_max

interface Task {
  readonly matter: Matter
  readonly plan: Plan
  made: number
  is_done: boolean
}

const isRelease = (act: Act): act is Act & { act: "release" } => act.act === "release"

const wishesOf = (tasks: ReadonlyArray<Task>) =>
  tasks.flatMap(({ matter, plan }): ReadonlyArray<ReleaseWish> => {
    const release = plan.acts.find(isRelease)
    if (release === undefined || matter.copy === undefined) return []
    const { keepers, is_last } = release
    return [{ copy: matter.copy, keepers, is_last }]
  })

/** What everybody who matters says of each. */
const makeAsked = (asking: Asking) =>
  async function asked(scene: Scene, view: RepairView, entries: ReadonlyArray<Entry>) {
    const said = await asking(wantedOf(scene, view, entries))
    const matters = entries.map((entry) => matterOf(view, said, entry))
    const refused = entries.filter((_, at) => {
      const { copy, answers } = matters[at] ?? {}
      return copy !== undefined && answers !== undefined && concernsAll(answers, copy)
    })
    if (refused.length === 0) return matters
    const all = await asking(wantedOf(scene, { ...view, round: 0 }, refused))
    const again = new Map(refused.map((entry) => [entry[0], matterOf(view, all, entry)]))
    return matters.map((matter) => again.get(matter.id) ?? matter)
  }

/** Does many at once: all but what needs others' word first. */
const carryOut = async (acts: Acts, tasks: ReadonlyArray<Task>) => {
  const todo = tasks.flatMap((task) => task.plan.acts.map((act) => ({ task, act })))
  const doOne = async ({ task, act }: (typeof todo)[number]) => {
    if (isRelease(act) || isForsake(act)) return
    const outcome = await acts.act(act, task.matter)
    task.made += outcome.made
    if (!outcome.is_done) task.is_done = false
  }
  const small = todo.filter(({ task }) => isSmallMatter(task.matter))
  const large = todo.filter(({ task }) => !isSmallMatter(task.matter))
  await inParallel(small, doOne, small_parallel_max)
  await inParallel(large, doOne)
  return todo.length
}

/** Tells others of deletions that every node was to learn of. */
const makeSpread = (asking: Asking, acts: Acts) =>
  async function spread(scene: Scene, deletions: ReadonlyArray<Deletion>, sum: BatchSum) {
    if (deletions.length === 0) return
    const ids = deletions.map(({ id }) => id)
    const others = toldIn(scene.members, scene.round)
    const said = await asking(new Map(others.map((peer) => [peer, ids])))
    await inParallel(others, async (peer) => {
      const known = said.get(peer.node_id)
      const theirs = ids.map((id) => known?.get(id))
      const news = known === undefined ? undefined : untold(deletions, theirs)
      sum.acts += news?.length ?? 0
      if (news === undefined || !(await acts.tell(peer, news))) sum.is_complete = false
    })
  }

/** Lets go what no put finished, where it is sure that it is no part of a blob; answers what. */
const makeForsaking = (parts: RepairParts, acts: Acts, asked: ReturnType<typeof makeAsked>) => {
  const forsakes = makeForsakes(parts)
  return async function forsake(scene: Scene, view: RepairView, tasks: ReadonlyArray<Task>) {
    const wished = tasks.flatMap(({ matter, plan }) => {
      const act = plan.acts.find(isForsake)
      return act === undefined ? [] : [{ matter, act }]
    })
    const may_go = await forsakes(
      scene.members,
      view,
      wished.map(({ matter }) => matter),
      (matters) =>
        asked(
          scene,
          view,
          matters.map(({ id, copy }) => [id, copy]),
        ),
    )
    const ids = new Set(may_go.map(({ id }) => id))
    for (const { matter, act } of wished) if (ids.has(matter.id)) await acts.act(act, matter)
    return ids
  }
}

export const makeBatches = (parts: RepairParts, acts: Acts, releases: Releases, pace: Pace) => {
  const asking = makeAsking(parts, pace)
  const asked = makeAsked(asking)
  const forsake = makeForsaking(parts, acts, asked)

  const letGo = (tasks: ReadonlyArray<Task>, ring_version: number) => {
    const wishes = wishesOf(tasks)
    return wishes.length === 0 ? new Set<BlobId>() : releases.release(wishes, ring_version)
  }
  /** Looks at what is here of these, and does for each what its plan says. */
  const run = async (
    scene: Scene,
    entries: ReadonlyArray<Entry>,
    sum: BatchSum,
  ): Promise<ReadonlyArray<Looked>> => {
    const view = viewOf(scene, parts.timing.now())
    const matters = await asked(scene, view, entries)
    const tasks = matters.map((matter): Task => {
      return { matter, plan: planFor(view, matter.answers), made: 0, is_done: true }
    })
    sum.acts += await carryOut(acts, tasks)
    const forsaken = await forsake(scene, view, tasks)
    const gone = forsaken.union(await letGo(tasks, scene.members.ring_version))
    for (const { matter, plan, made, is_done } of tasks) {
      if (made < plan.gaps) sum.lacking += 1
      if (plan.is_displaced && !gone.has(matter.id)) sum.displaced += 1
      if (plan.is_early) sum.early += 1
      if (!plan.is_known || !is_done) sum.is_complete = false
    }
    return tasks.map(({ matter: { id }, plan, made, is_done }) => {
      const is_all = plan.is_known && !plan.is_early && made >= plan.gaps
      return { id, is_done: is_done && is_all, is_early: plan.is_early }
    })
  }
  return { run, spread: makeSpread(asking, acts) }
}

export type Batches = ReturnType<typeof makeBatches>
