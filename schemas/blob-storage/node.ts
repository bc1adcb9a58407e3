/**
 * A node of a blob storage cluster: its address, capacity and usage.
 *
 * Source: document 1 §2 NodeInfo, §3 States; DECISIONS, document 1, states in answers.
 */
import { Schema } from "effect"
import { Uint64 } from "#schemas/blob-storage/blob.ts"
import { Instant } from "#schemas/instant.ts"
import { Token } from "#schemas/message.ts"

/**
 * Maximum length of an address: with all fields at their longest a full cluster fits in a snapshot.
 */
export const address_chars_max = 128

const uint64_max = 2n ** 64n - 1n

export const NodeId = Token.pipe(Schema.brand("NodeId")).annotate({
  description: "The node's name: 1 to 64 letters, digits, `_` and `-`, unique in the cluster.",
})
export type NodeId = typeof NodeId.Type

const port_max = 65_535

const hasPort = (address: string) => {
  const port = Number(address.slice(address.lastIndexOf(":") + 1))
  return (port >= 1 && port <= port_max) || `Expected a port from 1 to ${port_max}`
}

/** `host:port`, where host is a name, an IPv4 address, or an IPv6 address in brackets. */
export const NodeAddress = Schema.String.check(
  Schema.isMaxLength(address_chars_max),
  Schema.isPattern(/^(?:[A-Za-z0-9](?:[\w.-]*[A-Za-z0-9])?|\[[0-9A-Fa-f:.]{2,45}\]):\d{1,5}$/u, {
    expected: "host:port",
  }),
  Schema.makeFilter<string>(hasPort),
).annotate({
  description: "Host and port at which other nodes reach the node. An IPv6 address is in brackets.",
})

/** A uint64 in the log as decimal digits, because a JSON number could not represent it exactly. */
export const Uint64Digits = Schema.String.check(
  Schema.isPattern(/^(?:0|[1-9]\d{0,19})$/u),
  Schema.makeFilter<string>(
    (digits) => BigInt(digits) <= uint64_max || "Expected at most 2^64 - 1",
  ),
)

export const NodeState = Schema.Literals(["joining", "active", "leaving", "offline"]).annotate({
  description:
    "`joining`: not on the ring yet. `active`: receives new blobs. `leaving`: moves its blobs to " +
    "other nodes. `offline`: has sent no heartbeat for `cluster.heartbeat_deadline_seconds`.",
})
export type NodeState = typeof NodeState.Type

export const NodeInfo = Schema.Struct({
  node_id: NodeId,
  address: Schema.String.annotate({ description: "Host and port of the node." }),
  state: NodeState,
  capacity_bytes: Uint64.annotateKey({ description: "Bytes that the node contributes." }),
  used_bytes: Uint64.annotateKey({ description: "Bytes in use, from its last heartbeat." }),
  blob_count: Uint64.annotateKey({ description: "Number of blobs, from its last heartbeat." }),
}).annotate({ identifier: "NodeInfo" })
export type NodeInfo = typeof NodeInfo.Type

/** Points of a node on the ring, as percent of `vnodes_per_node`. */
const WeightPercent = Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 1600 }))

/** A node as recorded in the log. */
export const node_fields = {
  node_id: NodeId,
  address: NodeAddress,
  capacity_bytes: Uint64Digits,
  weight_percent: WeightPercent,
} as const

/** A node as it is stored. */
export const node_row = {
  cluster: Schema.String,
  ...node_fields,
  state: NodeState,
  joined_at: Instant,
  state_changed_at: Instant,
} as const
