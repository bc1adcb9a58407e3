/**
 * The shortfall process: records in this node's volume when a shortfall of copies begins, because
 * too few nodes are active or because copies are missing, and when it ends.
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

/** Number of nodes that can hold copies; a single node always counts itself. */
export const activeNodes = (nodes: ReadonlyArray<{ readonly state: NodeState }>) =>
  Math.max(1, nodes.filter(({ state }) => state === "active").length)

/** The findings of the last complete repair sweep. */
export interface SweepFindings {
  /** The ring version of that sweep. */
  readonly ring_version: number
  /** Blobs that lacked copies after it. */
  readonly under_replicated: number
}

export interface ShortfallOptions {
  readonly cluster: string
  readonly node_id: string
  /**
   * Returns undefined before the first sweep. Absent without repair: then only nodes are counted.
   */
  readonly lastFindings?: () => SweepFindings | undefined
}

/** Interval between checks of the repair, in milliseconds: it sends no notifications. */
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

/** The number of blobs known to lack copies, and whether that number is complete. */
const knownShortfall = ({ lastFindings: checked }: ShortfallOptions, { cluster, volume }: View) => {
  const active_nodes = activeNodes(cluster?.state.nodes ?? [])
  const too_few_nodes = underReplicated(volume?.state.policies ?? {}, active_nodes)
  // A single node has no other copies to compare with.
  if (checked === undefined || active_nodes === 1) {
    return { active_nodes, under_replicated: too_few_nodes, is_sure: true }
  }
  const findings = checked()
  const under_replicated = Math.max(too_few_nodes, findings?.under_replicated ?? 0)
  // A sweep of another ring does not prove that copies are where the current ring places them.
  const is_sure = findings?.ring_version === cluster?.state.ring_version
  return { active_nodes, under_replicated, is_sure }
}

const due = (options: ShortfallOptions, view: View, now: number): Due => {
  const { cluster, volume } = view
  const later = options.lastFindings === undefined ? {} : { next: now + look_ms }
  if (volume === undefined) return { now: [], ...later }
  const { active_nodes, under_replicated, is_sure } = knownShortfall(options, view)
  const change = shortfallChange(volume.state.is_short, under_replicated)
  if (change === undefined || (change === "ended" && !is_sure)) return { now: [], ...later }
  const { node_id } = options
  const cause = Math.max(volume.position, cluster?.position ?? 0)
  const command = RecordShortfall.make({ active_nodes, under_replicated })
  const batch = [address(Volume, node_id, command)]
  return {
    now: [{ command_id: `shortfall-${node_id}-${cause}`, cause: String(cause), batch }],
    ...later,
  }
}

/** For node `node_id`; each node runs its own. */
export const shortfall = (options: ShortfallOptions): Process => ({
  name: "blob-storage-shortfall",
  part: "blob-storage",
  from: "lasts",
  start: Effect.gen(function* () {
    const log = yield* Log
    const { cluster, node_id } = options
    const view: View = {}
    // After the last commits the log is read from an earlier position: skip older commits.
    const isNewer = (seen: At<unknown> | undefined, position: number) =>
      position > (seen?.position ?? 0)
    return {
      fold: Effect.fnUntraced(function* (recorded) {
        const { stream, position } = recorded
        if (stream === `${Cluster.name}.${cluster}` && isNewer(view.cluster, position)) {
          view.cluster = { position, state: yield* clusterAfter(log, recorded) }
        }
        if (stream === `${Volume.name}.${node_id}` && isNewer(view.volume, position)) {
          view.volume = { position, state: yield* volumeAfter(log, recorded) }
        }
      }),
      due: (now) => due(options, view, now),
    }
  }),
})
