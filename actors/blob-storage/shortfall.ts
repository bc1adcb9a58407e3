/**
 * The shortfall's process: tells this node's volume when there are too few active nodes for the
 * copies that its blobs ask for, or copies are found missing, and when all are there again.
 *
 * Source: DECISIONS, document 1, replica count not reachable; DESIGN of the running system, 7.
 */
import { Effect } from "effect"
import { Cluster, type ClusterContext, clusterAfter } from "#actors/blob-storage/cluster.ts"
import {
  shortfallChange,
  underReplicated,
  Volume,
  type VolumeContext,
  volumeAfter,
} from "#actors/blob-storage/volume.ts"
import { address } from "#actors/commands.ts"
import type { Due, Process } from "#actors/process.ts"
import { Log } from "#events/log.ts"
import type { NodeState } from "#schemas/blob-storage/node.ts"
import { RecordShortfall } from "#schemas/blob-storage/volume.ts"

/** How many of a cluster's nodes can hold copies; a node that is alone still keeps its own. */
export const activeNodes = (nodes: ReadonlyArray<{ readonly state: NodeState }>) =>
  Math.max(1, nodes.filter(({ state }) => state === "active").length)

/** What the last whole sweep of the repair found. */
export interface Checked {
  /** The ring that it was made by. */
  readonly ring_version: number
  /** Blobs that lacked copies after it. */
  readonly under_replicated: number
}

export interface ShortfallOptions {
  readonly cluster: string
  readonly node_id: string
  /** Undefined before there was one. Not given: there is no repair, and only nodes are counted. */
  readonly checked?: () => Checked | undefined
}

/** How often the repair is looked at, in milliseconds: it tells nobody by itself. */
const look_ms = 1000

/** A stream's state after its commit at `position`. */
interface At<State> {
  readonly position: number
  readonly state: State
}

interface View {
  cluster?: At<ClusterContext>
  volume?: At<VolumeContext>
}

/** How many blobs are known to be short, and whether it is known that no other is. */
const known = ({ checked }: ShortfallOptions, { cluster, volume }: View) => {
  const active_nodes = activeNodes(cluster?.state.nodes ?? [])
  const too_few_nodes = underReplicated(volume?.state.policies ?? {}, active_nodes)
  // A node that is alone compares with nobody.
  if (checked === undefined || active_nodes === 1) {
    return { active_nodes, under_replicated: too_few_nodes, is_sure: true }
  }
  const found = checked()
  const under_replicated = Math.max(too_few_nodes, found?.under_replicated ?? 0)
  // What was found by another ring does not say that the copies are where this one wants them.
  const is_sure = found?.ring_version === cluster?.state.ring_version
  return { active_nodes, under_replicated, is_sure }
}

const due = (options: ShortfallOptions, view: View, now: number): Due => {
  const { cluster, volume } = view
  const later = options.checked === undefined ? {} : { next: now + look_ms }
  if (volume === undefined) return { now: [], ...later }
  const { active_nodes, under_replicated, is_sure } = known(options, view)
  const change = shortfallChange(volume.state.is_short, under_replicated)
  if (change === undefined || (change === "ended" && !is_sure)) return { now: [], ...later }
  const { node_id } = options
  const cause = Math.max(volume.position, cluster?.position ?? 0)
  const told = RecordShortfall.make({ active_nodes, under_replicated })
  const batch = [address(Volume, node_id, told)]
  return {
    now: [{ command_id: `shortfall-${node_id}-${cause}`, cause: String(cause), batch }],
    ...later,
  }
}

/** Of the node `node_id`: each node runs its own. */
export const shortfall = (options: ShortfallOptions): Process => ({
  name: "blob-storage-shortfall",
  part: "blob-storage",
  from: "lasts",
  start: Effect.gen(function* () {
    const log = yield* Log
    const { cluster, node_id } = options
    const view: View = {}
    // After the last commits the log is read from before them: what is older tells nothing new.
    const isNews = (seen: At<unknown> | undefined, position: number) =>
      position > (seen?.position ?? 0)
    return {
      fold: Effect.fnUntraced(function* (recorded) {
        const { stream, position } = recorded
        if (stream === `${Cluster.name}.${cluster}` && isNews(view.cluster, position)) {
          view.cluster = { position, state: yield* clusterAfter(log, recorded) }
        }
        if (stream === `${Volume.name}.${node_id}` && isNews(view.volume, position)) {
          view.volume = { position, state: yield* volumeAfter(log, recorded) }
        }
      }),
      due: (now) => due(options, view, now),
    }
  }),
})
