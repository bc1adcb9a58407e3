/**
 * Places for backups: a new S3 server for each round, because it holds the stored data in memory.
 */
import { join } from "node:path"
import { CreateBucketCommand, S3Client } from "@aws-sdk/client-s3"
import { Effect, Exit, Redacted, Scope } from "effect"
import { radosgw } from "#adapters/share-protection/radosgw.ts"

/** A bucket with object lock on its own server. */
export interface Place {
  readonly endpoint: string
  readonly bucket: string
  readonly access_key: string
  readonly secret_key: string
  readonly close: () => Promise<void>
}

let places = 0

/** Starts a server in `folder` with one bucket. */
export const openPlace = async (folder: string): Promise<Place> => {
  const scope = Scope.makeUnsafe()
  const own = { folder: join(folder, `s3-${++places}`), store: "memstore" } as const
  const server = await Effect.runPromise(Scope.provide(radosgw(own), scope))
  const { endpoint } = server
  const access_key = Redacted.value(server.access_key)
  const secret_key = Redacted.value(server.secret_key)
  const client = new S3Client({
    endpoint,
    region: "us-east-1",
    forcePathStyle: true,
    credentials: { accessKeyId: access_key, secretAccessKey: secret_key },
  })
  const bucket = "backups"
  await client.send(new CreateBucketCommand({ Bucket: bucket, ObjectLockEnabledForBucket: true }))
  client.destroy()
  const close = () => Effect.runPromise(Scope.close(scope, Exit.void))
  return { endpoint, bucket, access_key, secret_key, close }
}
