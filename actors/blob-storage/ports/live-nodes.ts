/**
 * LiveNodes, the port to what the nodes last said of themselves. These values are no events: they
 * are in no commit, and no rebuild of a read model touches them.
 *
 * Source: DESIGN of the running system, 5; document 1 §4 ClusterService, heartbeat.
 */
import { Clock, Context, Effect, Layer } from "effect"
import type { NodeProgress } from "#actors/blob-storage/ports/repair-progress.ts"
import { nodes_max } from "#schemas/blob-storage/cluster.ts"
import type { NodeId } from "#schemas/blob-storage/node.ts"

/** Nodes that are kept in mind: those of the cluster, and as many that left or never joined. */
const heard_max = 2 * nodes_max

/** A heartbeat as it was sent. */
export interface Heartbeat {
  readonly node_id: NodeId
  readonly used_bytes: bigint
  readonly blob_count: bigint
  /** What the node may store by now, where it says so: its disk may have filled since it joined. */
  readonly capacity_bytes?: bigint
  /** How far its repair is, where it says so. */
  readonly progress?: NodeProgress
}

/** A node as this process heard it last. */
export interface LiveNode extends Heartbeat {
  /** Epoch milliseconds by this process's own clock: no other clock decides about silence. */
  readonly heard_at: number
}

export class LiveNodes extends Context.Service<
  LiveNodes,
  {
    /** Tells every process of the cluster. It never fails: the next heartbeat tells it anew. */
    readonly beat: (heartbeat: Heartbeat) => Effect.Effect<void>
    /** What this process has heard of the node; undefined when that is nothing. */
    readonly find: (node_id: string) => LiveNode | undefined
  }
>()("actors/LiveNodes") {
  /** For one process. */
  static readonly memory = Layer.sync(this, () => {
    const heard = hearing()
    return { beat: heard.hear, find: heard.find }
  })
}

/** Where what was heard outlives the process. It never throws: who is heard is heard without it. */
export interface LiveKeeper {
  /** What was heard before, longest ago first. */
  readonly kept: ReadonlyArray<LiveNode>
  readonly keep: (node: LiveNode) => void
  readonly forget: (node_id: string) => void
}

const nobody: LiveKeeper = { kept: [], keep: () => {}, forget: () => {} }

/** What was heard, bounded: the node that was silent longest is forgotten first. */
export const hearing = ({ kept, keep, forget }: LiveKeeper = nobody) => {
  const nodes = new Map<string, LiveNode>(kept.map((node) => [node.node_id, node]))
  return {
    hear: (heartbeat: Heartbeat) =>
      Effect.map(Clock.currentTimeMillis, (heard_at) => {
        const node = { ...heartbeat, heard_at }
        nodes.delete(node.node_id)
        nodes.set(node.node_id, node)
        keep(node)
        const [oldest] = nodes.size > heard_max ? nodes.keys() : []
        if (oldest !== undefined && nodes.delete(oldest)) forget(oldest)
      }),
    find: (node_id: string) => nodes.get(node_id),
  }
}
