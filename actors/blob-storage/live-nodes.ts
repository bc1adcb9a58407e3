/**
 * LiveNodes, the port to what the nodes last said of themselves. These values are no events: they
 * are kept in memory, and are gone when nobody has heard the node for long.
 *
 * Source: DESIGN of the running system, 5; document 1 §4 ClusterService, heartbeat.
 */
import { Clock, Context, Effect, Layer } from "effect"
import { nodes_max } from "#schemas/blob-storage/cluster.ts"
import type { NodeId } from "#schemas/blob-storage/node.ts"

/** Nodes that are kept in mind: those of the cluster, and as many that left or never joined. */
const heard_max = 2 * nodes_max

/** A heartbeat as it was sent. */
export interface Heartbeat {
  readonly node_id: NodeId
  readonly used_bytes: bigint
  readonly blob_count: bigint
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

/** What was heard, bounded: the node that was silent longest is forgotten first. */
export const hearing = () => {
  const nodes = new Map<string, LiveNode>()
  return {
    hear: (heartbeat: Heartbeat) =>
      Effect.map(Clock.currentTimeMillis, (heard_at) => {
        nodes.delete(heartbeat.node_id)
        nodes.set(heartbeat.node_id, { ...heartbeat, heard_at })
        const [oldest] = nodes.keys()
        if (nodes.size > heard_max && oldest !== undefined) nodes.delete(oldest)
      }),
    find: (node_id: string) => nodes.get(node_id),
  }
}
