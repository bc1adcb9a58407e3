/**
 * Ceph's S3 in the blob suite: one copy, BlueStore on a file, without signatures. Anyone may read
 * and write its bucket, which saves it the cost of verifying signatures.
 */
import { CreateBucketCommand, PutBucketPolicyCommand, S3Client } from "@aws-sdk/client-s3"
import { Effect, Exit, Redacted, Scope } from "effect"
import { radosgw } from "#adapters/share-protection/radosgw.ts"
import { freePort } from "../harness/free-port.ts"
import { unique_mark } from "./request.ts"
import { type BlobServer, gibibyte, plainGet, plainPut } from "./server.ts"

/** Its store is a file of 4 GiB; it accepts no more once that is full. */
const room_bytes = 3 * gibibyte

const bucket = "bench"

const policy = JSON.stringify({
  Version: "2012-10-17",
  Statement: [
    {
      Effect: "Allow",
      Principal: "*",
      Action: ["s3:PutObject", "s3:GetObject"],
      Resource: [`arn:aws:s3:::${bucket}/*`],
    },
  ],
})

export const startRadosgw = async (folder: string): Promise<BlobServer> => {
  const scope = Scope.makeUnsafe()
  const stop = () => Effect.runPromise(Scope.close(scope, Exit.void))
  try {
    const quick_port = await freePort()
    const starting = radosgw({ folder, store: "bluestore", quick_port })
    const server = await Effect.runPromise(Scope.provide(starting, scope))
    const client = new S3Client({
      endpoint: server.endpoint,
      region: "us-east-1",
      forcePathStyle: true,
      credentials: {
        accessKeyId: Redacted.value(server.access_key),
        secretAccessKey: Redacted.value(server.secret_key),
      },
    })
    await client.send(new CreateBucketCommand({ Bucket: bucket }))
    await client.send(new PutBucketPolicyCommand({ Bucket: bucket, Policy: policy }))
    client.destroy()
    const path = `/${bucket}/${unique_mark}`
    return {
      protocol: "http",
      port: Number(new URL(server.endpoint).port),
      room_bytes,
      stop,
      put: plainPut("PUT", path),
      get: plainGet(path),
      // By default it waits for the client's ACK before it sends the end of a short response.
      other: { name: "radosgw, tcp_nodelay", port: quick_port },
    }
  } catch (cause) {
    await stop()
    throw cause
  }
}
