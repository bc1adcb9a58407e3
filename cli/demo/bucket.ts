/** The bucket of `almanac demo s3` on its own S3 server. */
import { CreateBucketCommand, PutObjectLockConfigurationCommand } from "@aws-sdk/client-s3"
import { Effect } from "effect"
import type { Bucket } from "#actors/share-protection/ports/buckets.ts"
import { type Radosgw, type RadosgwOptions, radosgw } from "#adapters/share-protection/radosgw.ts"
import { request, s3_bounds, withBucket } from "#adapters/share-protection/s3/client.ts"

/** Starts the server, which stops with the scope, and creates a bucket with object lock. */
export const demoBucket = Effect.fnUntraced(function* (options: RadosgwOptions) {
  const bucket = bucketOn(yield* radosgw(options))
  yield* makeBucket(bucket)
  return bucket
})

const bucketOn = ({ endpoint, access_key, secret_key }: Radosgw): Bucket => ({
  endpoint,
  bucket: "demo",
  region: null,
  addressing_mode: "path",
  ca_cert: null,
  access_key,
  secret_key,
})

/** The shortest default retention of a bucket, in the mode that its owner can bypass. */
const day_lock = {
  ObjectLockEnabled: "Enabled",
  Rule: { DefaultRetention: { Mode: "GOVERNANCE", Days: 1 } },
} as const

const makeBucket = (bucket: Bucket) =>
  withBucket(bucket, s3_bounds, (open) =>
    request(open, async (client, options) => {
      const name = { Bucket: bucket.bucket }
      const locked = { ...name, ObjectLockEnabledForBucket: true }
      await client.send(new CreateBucketCommand(locked), options)
      const lock = { ...name, ObjectLockConfiguration: day_lock }
      await client.send(new PutObjectLockConfigurationCommand(lock), options)
    }),
  )
