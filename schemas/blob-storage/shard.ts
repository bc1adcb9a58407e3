/**
 * Which part of a blob a fact is about, where it is not the whole.
 *
 * Source: document 1 §2 Replication policies.
 */
import { Schema } from "effect"

const Count = Schema.Int.check(Schema.isGreaterThanOrEqualTo(0))

/** From 0, the shards of data first; `bytes` are those of this one shard. */
export const FactShard = Schema.Struct({ index: Count, data_shards: Count, bytes: Count })
export type FactShard = typeof FactShard.Type
