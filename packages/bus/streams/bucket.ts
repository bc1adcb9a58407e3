/** A key-value bucket as a stream: the last message of each key, kept on disk. */
import { DiscardPolicy, RetentionPolicy, StorageType } from "@nats-io/jetstream"
import type { WantedStream } from "./stream.ts"

/** The bucket's stream, as the key-value clients create it. */
export const bucketStream = (bucket: string, replicas: number) =>
  ({
    name: `KV_${bucket}`,
    subjects: [`$KV.${bucket}.>`],
    storage: StorageType.File,
    retention: RetentionPolicy.Limits,
    discard: DiscardPolicy.New,
    max_msgs_per_subject: 1,
    allow_rollup_hdrs: true,
    deny_delete: true,
    allow_direct: true,
    num_replicas: replicas,
  }) satisfies WantedStream
