/**
 * The shortfall's process: tells this node's volume when there are too few active nodes for the
 * copies that its blobs ask for, and when there are enough again.
 *
 * Source: DECISIONS, document 1, replica count not reachable; DESIGN of the running system, 7.
 */
import { Effect } from "effect"
import { Cluster, type ClusterContext, clusterAfter } from "#actors/blob-storage/cluster.ts"
import { shortfallChange, underReplicated } from "#actors/blob-storage/replication.ts"
import { Volume, type VolumeContext, volumeAfter } from "#actors/blob-storage/volume.ts"
import { address } from "#actors/commands.ts"
import type { Due, Process } from "#actors/process.ts"
import { Log } from "#events/log.ts"
import type { NodeState } from "#schemas/blob-storage/node.ts"
import { RecordShortfall } from "#schemas/blob-storage/volume.ts"

/** How many of a cluster's nodes can hold copies; a node that is alone still keeps its own. */
export const activeNodes = (nodes: ReadonlyArray<{ readonly state: NodeState }>) =>
  Math.max(1, nodes.filter(({ state }) => state === "active").length)

export interface ShortfallOptions {
  readonly cluster: string
  readonly node_id: string
}

/** A stream's state after its commit at `position`. */
interface At<State> {
  readonly position: number
  readonly state: State
}

interface View {
  cluster?: At<ClusterContext>
  volume?: At<VolumeContext>
}

const due = (node_id: string, { cluster, volume }: View): Due => {
  if (volume === undefined) return { now: [] }
  const { policies, is_short } = volume.state
  const active_nodes = activeNodes(cluster?.state.nodes ?? [])
  const change = shortfallChange(is_short, underReplicated(policies, active_nodes))
  if (change === undefined) return { now: [] }
  const cause = Math.max(volume.position, cluster?.position ?? 0)
  const batch = [address(Volume, node_id, RecordShortfall.make({ active_nodes }))]
  return {
    now: [{ command_id: `shortfall-${node_id}-${cause}`, cause: String(cause), batch }],
  }
}

/** Of the node `node_id`: each node runs its own. */
export const shortfall = ({ cluster, node_id }: ShortfallOptions): Process => ({
  name: "blob-storage-shortfall",
  part: "blob-storage",
  from: "lasts",
  start: Effect.gen(function* () {
    const log = yield* Log
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
      due: () => due(node_id, view),
    }
  }),
})
