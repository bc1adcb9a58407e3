/** A real S3 server for tests: Ceph's gateway from the tree that the bootstrap installs. */
import {
  CreateBucketCommand,
  PutBucketVersioningCommand,
  PutObjectLockConfigurationCommand,
  S3Client,
} from "@aws-sdk/client-s3"
import { describe } from "@effect/vitest"
import { Context, Effect, Exit, Layer, Redacted, Scope } from "effect"
import type { Bucket } from "#actors/share-protection/ports/buckets.ts"
import { type Radosgw, radosgw } from "#adapters/share-protection/radosgw.ts"
import { findTree, trees } from "../../../launcher/trees.mjs"
import { describeAbsent } from "./absent.ts"
import { temporaryFolder } from "./nats.ts"

export interface TestBucketOptions {
  /** Object lock, which implies versions; defaults to true. */
  readonly lock?: boolean
  /** Versions without object lock. */
  readonly versioning?: boolean
  /** The bucket's default retention for new objects (COMPLIANCE); none if absent. */
  readonly retention_days?: number
}

/** The server, with a way to create buckets on it. */
export interface TestRadosgw extends Radosgw {
  readonly bucket: (options?: TestBucketOptions) => Effect.Effect<Bucket>
}

/** A client for tests, which check an adapter's results independently of it. */
export const s3Client = ({ endpoint, access_key, secret_key }: Omit<Radosgw, "stop" | "start">) =>
  new S3Client({
    endpoint,
    region: "us-east-1",
    forcePathStyle: true,
    maxAttempts: 1,
    requestChecksumCalculation: "WHEN_REQUIRED",
    responseChecksumValidation: "WHEN_REQUIRED",
    credentials: {
      accessKeyId: Redacted.value(access_key),
      secretAccessKey: Redacted.value(secret_key),
    },
  })

/** A server for one test file, ready in about 2 s, with everything in memory. */
export const testRadosgw = Effect.gen(function* () {
  const folder = yield* temporaryFolder
  const server = yield* radosgw({ folder, store: "memstore" })
  const client = yield* Effect.acquireRelease(
    Effect.sync(() => s3Client(server)),
    (open) => Effect.sync(() => open.destroy()),
  )
  let made = 0
  const bucket = ({ lock = true, versioning, retention_days }: TestBucketOptions = {}) =>
    Effect.promise(async (): Promise<Bucket> => {
      const name = `bucket-${++made}`
      const ObjectLockEnabledForBucket = lock
      await client.send(new CreateBucketCommand({ Bucket: name, ObjectLockEnabledForBucket }))
      if (versioning === true) {
        const VersioningConfiguration = { Status: "Enabled" } as const
        await client.send(new PutBucketVersioningCommand({ Bucket: name, VersioningConfiguration }))
      }
      if (retention_days !== undefined) {
        const rule = { DefaultRetention: { Mode: "COMPLIANCE", Days: retention_days } } as const
        const ObjectLockConfiguration = { ObjectLockEnabled: "Enabled", Rule: rule } as const
        await client.send(
          new PutObjectLockConfigurationCommand({ Bucket: name, ObjectLockConfiguration }),
        )
      }
      const { endpoint, access_key, secret_key } = server
      const place = { endpoint, bucket: name, region: null, ca_cert: null } as const
      return { ...place, addressing_mode: "path", access_key, secret_key }
    })
  return { ...server, bucket } satisfies TestRadosgw
})

/** The same for tests that use promises: it runs until closed. */
export const startRadosgw = async () => {
  const scope = await Effect.runPromise(Scope.make())
  const server = await Effect.runPromise(Effect.provideService(testRadosgw, Scope.Scope, scope))
  const newBucket = (options?: TestBucketOptions) => Effect.runPromise(server.bucket(options))
  const close = () => Effect.runPromise(Scope.close(scope, Exit.void))
  return { ...server, newBucket, close }
}

/** The same as a service, for tests of one file that share it. */
export class S3 extends Context.Service<S3, TestRadosgw>()("test/S3") {
  static readonly layer = Layer.effect(S3, Effect.orDie(testRadosgw))
}

/**
 * A `describe` for tests that need the server: without one they are skipped with one line, and fail
 * if ALMANAC_REQUIRE_ALL=1.
 */
export const describeWithRadosgw = (name: string, define: () => void) => {
  if (findTree("radosgw") !== undefined) return describe(name, define)
  const why = `radosgw is required; install it with: ${trees.radosgw.install_command}`
  describeAbsent(name, "radosgw", why)
}
