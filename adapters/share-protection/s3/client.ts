/**
 * An S3 client for one bucket and one operation. A tenant chose the endpoint, so it gets only that
 * tenant's keys, its redirects are not followed, and timeouts and response sizes are limited.
 *
 * Source: decision 0061.
 */
import { Agent as HttpAgent } from "node:http"
import { Agent as HttpsAgent } from "node:https"
import { Transform } from "node:stream"
import { S3Client } from "@aws-sdk/client-s3"
import { Effect, Redacted } from "effect"
import type { Bucket } from "#actors/share-protection/ports/buckets.ts"
import { type AddressRule, guardedAgent } from "#adapters/outside/address.ts"
import { S3Failure, s3Failure, timeoutFailure } from "#adapters/share-protection/s3/failure.ts"

/** Timeouts of a request in milliseconds, and the allowed addresses. */
export interface S3Bounds {
  readonly connect_ms: number
  /** Idle timeout, before or during the response. */
  readonly idle_ms: number
  /** Timeout of the request including retries. */
  readonly total_ms: number
  /** All addresses if absent, for an operator's own requests. */
  readonly isAllowed?: AddressRule
}

/** A healthy service responds within 1 s, a remote or busy one within several. */
export const s3_bounds: S3Bounds = { connect_ms: 5_000, idle_ms: 15_000, total_ms: 45_000 }

export interface OpenBucket {
  readonly client: S3Client
  readonly name: string
  readonly bounds: S3Bounds
}

/** Attempts of a request: one retry of temporary errors. */
const attempts_max = 2
/** Maximum concurrent requests; more would only slow the service down. */
export const requests_max = 16
/**
 * Maximum size of a response in bytes: a page of 1,000 versions with the longest names takes 4 MB.
 */
const response_bytes_max = 16_777_216
/** Used if the tenant configures no region; self-hosted servers accept it too. */
const region_default = "us-east-1"

/** Opens the bucket for `use` and closes its connections afterwards. */
export const withBucket = <A, E, R>(
  bucket: Bucket,
  bounds: S3Bounds,
  use: (s3: OpenBucket) => Effect.Effect<A, E, R>,
) =>
  Effect.acquireUseRelease(
    Effect.sync(() => ({ client: makeClient(bucket, bounds), name: bucket.bucket, bounds })),
    use,
    ({ client }) => Effect.sync(() => client.destroy()),
  )

type Options = { readonly abortSignal: AbortSignal }

/** Sends a request; an interrupt aborts it. */
export const request = <A>(
  { client, bounds }: OpenBucket,
  run: (client: S3Client, options: Options) => Promise<A>,
): Effect.Effect<A, S3Failure> =>
  Effect.tryPromise({
    try: (abortSignal) => run(client, { abortSignal }),
    catch: s3Failure,
  }).pipe(
    Effect.timeoutOrElse({
      duration: bounds.total_ms,
      orElse: () => Effect.fail(timeoutFailure()),
    }),
  )

const makeClient = (bucket: Bucket, bounds: S3Bounds) => {
  const connections = { keepAlive: true, maxSockets: requests_max }
  const { isAllowed } = bounds
  const withAddressCheck = <A extends HttpAgent>(agent: A) =>
    isAllowed === undefined ? agent : guardedAgent(agent, isAllowed)
  const ca = bucket.ca_cert === null ? {} : { ca: bucket.ca_cert }
  const client = new S3Client({
    endpoint: bucket.endpoint,
    region: bucket.region ?? region_default,
    forcePathStyle: bucket.addressing_mode === "path",
    maxAttempts: attempts_max,
    credentials: {
      accessKeyId: Redacted.value(bucket.access_key),
      secretAccessKey: Redacted.value(bucket.secret_key),
    },
    // Servers that do not know the newer checksums reject them.
    requestChecksumCalculation: "WHEN_REQUIRED",
    responseChecksumValidation: "WHEN_REQUIRED",
    // AWS settings in this process's environment must not affect a tenant's service.
    useFipsEndpoint: false,
    useDualstackEndpoint: false,
    useArnRegion: false,
    followRegionRedirects: false,
    disableS3ExpressSessionAuth: true,
    requestHandler: {
      connectionTimeout: bounds.connect_ms,
      socketTimeout: bounds.idle_ms,
      // At times all requests wait for a connection; that is normal and needs no warning.
      socketAcquisitionWarningTimeout: bounds.total_ms,
      httpAgent: withAddressCheck(new HttpAgent(connections)),
      httpsAgent: withAddressCheck(new HttpsAgent({ ...connections, ...ca })),
    },
  })
  limitResponses(client)
  return client
}

/**
 * Limits the response size: the SDK reads responses to the end. At low priority this runs before
 * the SDK reads.
 */
const limitResponses = (client: S3Client) =>
  client.middlewareStack.add(
    (next) => async (args) => {
      const output = await next(args)
      if (hasBody(output.response)) output.response.body = limitBody(output.response.body)
      return output
    },
    { step: "deserialize", priority: "low", name: "boundAnswers" },
  )

const hasBody = (response: unknown): response is { body: NodeJS.ReadableStream } =>
  typeof response === "object" &&
  response !== null &&
  "body" in response &&
  typeof response.body === "object" &&
  response.body !== null &&
  "pipe" in response.body

const limitBody = (body: NodeJS.ReadableStream) => {
  let bytes = 0
  const limit = new Transform({
    transform(part: Buffer, _encoding, done) {
      bytes += part.length
      done(bytes > response_bytes_max ? tooLong() : null, part)
    },
  })
  body.once("error", (error) => limit.destroy(error))
  return body.pipe(limit)
}

const tooLong = () => Object.assign(new Error("too long"), { code: "AnswerTooLong" })

/** The failure of a listing with implausibly many pages. */
export const endlessListing = () =>
  new S3Failure({ kind: "odd", code: "", message: "returns an endless list" })
