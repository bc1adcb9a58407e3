/**
 * LiveNodes: the port to the latest heartbeat of each node. These values are not events: no commit
 * holds them, and no rebuild of a read model affects them.
 *
 * Source: DESIGN of the running system, 5; document 1 §4 ClusterService, heartbeat.
 */
import { Clock, Context, Effect, Layer } from "effect"
import type { NodeProgress } from "#actors/blob-storage/ports/repair-progress.ts"
import { nodes_max } from "#schemas/blob-storage/cluster.ts"
import type { NodeId } from "#schemas/blob-storage/node.ts"

/** Maximum number of nodes in memory: a full cluster, and as many that left or never joined. */
const nodes_kept_max = 2 * nodes_max

/** A heartbeat as its node sent it. */
export interface Heartbeat {
  readonly node_id: NodeId
  readonly used_bytes: bigint
  readonly blob_count: bigint
  /** The node's current capacity, if reported: its disk may have filled since it joined. */
  readonly capacity_bytes?: bigint
  /** The progress of its repair, if reported. */
  readonly progress?: NodeProgress
}

/** The latest heartbeat of a node that this process received. */
export interface LiveNode extends Heartbeat {
  /**
   * Epoch milliseconds by this process's clock, the only one that decides whether a node is silent.
   */
  readonly received_at: number
}

export class LiveNodes extends Context.Service<
  LiveNodes,
  {
    /** Publishes a heartbeat to all processes. Never fails: the next heartbeat replaces it. */
    readonly publish: (heartbeat: Heartbeat) => Effect.Effect<void>
    /** The latest heartbeat of the node; undefined if this process received none. */
    readonly find: (node_id: string) => LiveNode | undefined
  }
>()("actors/LiveNodes") {
  /** For a single process. */
  static readonly memory = Layer.sync(this, () => {
    const nodes = makeLiveNodes()
    return { publish: nodes.record, find: nodes.find }
  })
}

/** Stores heartbeats beyond the life of the process. Never throws: storage is optional. */
export interface HeartbeatStore {
  /** Heartbeats stored earlier, oldest first. */
  readonly stored: ReadonlyArray<LiveNode>
  readonly save: (node: LiveNode) => void
  readonly remove: (node_id: string) => void
}

const no_store: HeartbeatStore = { stored: [], save: () => {}, remove: () => {} }

/** A bounded table of heartbeats, which evicts the node that was silent longest. */
export const makeLiveNodes = ({ stored, save, remove }: HeartbeatStore = no_store) => {
  const nodes = new Map<string, LiveNode>(stored.map((node) => [node.node_id, node]))
  return {
    record: (heartbeat: Heartbeat) =>
      Effect.map(Clock.currentTimeMillis, (received_at) => {
        const node = { ...heartbeat, received_at }
        nodes.delete(node.node_id)
        nodes.set(node.node_id, node)
        save(node)
        const [oldest] = nodes.size > nodes_kept_max ? nodes.keys() : []
        if (oldest !== undefined && nodes.delete(oldest)) remove(oldest)
      }),
    find: (node_id: string) => nodes.get(node_id),
  }
}
