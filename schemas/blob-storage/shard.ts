/**
 * The part of a blob that a fact is about, if it is not the whole blob.
 *
 * Source: document 1 §2 Replication policies.
 */
import { Schema } from "effect"

const Count = Schema.Int.check(Schema.isGreaterThanOrEqualTo(0))

/** Counted from 0, data shards first; `bytes` is the size of this shard. */
export const FactShard = Schema.Struct({ index: Count, data_shards: Count, bytes: Count })
export type FactShard = typeof FactShard.Type
