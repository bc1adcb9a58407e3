/**
 * A bucket of S3, open for as long as one question takes. The endpoint is a tenant's choice: it is
 * never asked with keys but the tenant's own, never followed elsewhere, and neither its silence
 * nor the length of its answers costs more than is said here.
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
import { late, S3Failure, s3Failure } from "#adapters/share-protection/s3/failure.ts"

/** How long the parts of a request may take, in milliseconds, and where it may go. */
export interface S3Bounds {
  readonly connect_ms: number
  /** That nothing comes: before the answer, or in the middle of it. */
  readonly silence_ms: number
  /** The whole request with its repetitions. */
  readonly whole_ms: number
  /** Absent: anywhere, as an operator asks. */
  readonly isAllowed?: AddressRule
}

/** A service that is well answers within 1 s, and one far away or busy within some. */
export const s3_bounds: S3Bounds = { connect_ms: 5_000, silence_ms: 15_000, whole_ms: 45_000 }

export interface OpenBucket {
  readonly client: S3Client
  readonly name: string
  readonly bounds: S3Bounds
}

/** Tries of one request: once again after what may pass by itself. */
const attempts_max = 2
/** Requests at once; beyond that a service slows down rather than answers more. */
export const requests_max = 16
/** Bytes of an answer: a page of 1,000 versions with the longest names there are takes 4 MB. */
const answer_bytes_max = 16_777_216
/** Where the tenant names no region; servers of one's own take it as well. */
const region_default = "us-east-1"

/** Opens the bucket for the time of `use`; its connections are closed after it. */
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

/** One request; interrupted, it is broken off. */
export const request = <A>(
  { client, bounds }: OpenBucket,
  run: (client: S3Client, options: Options) => Promise<A>,
): Effect.Effect<A, S3Failure> =>
  Effect.tryPromise({
    try: (abortSignal) => run(client, { abortSignal }),
    catch: s3Failure,
  }).pipe(Effect.timeoutOrElse({ duration: bounds.whole_ms, orElse: () => Effect.fail(late()) }))

const makeClient = (bucket: Bucket, bounds: S3Bounds) => {
  const connections = { keepAlive: true, maxSockets: requests_max }
  const { isAllowed } = bounds
  const guarded = <A extends HttpAgent>(agent: A) =>
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
    // Checksums that S3 came to know later are an error to servers that do not know them.
    requestChecksumCalculation: "WHEN_REQUIRED",
    responseChecksumValidation: "WHEN_REQUIRED",
    // Whatever this process' environment says of AWS is not about the tenant's service.
    useFipsEndpoint: false,
    useDualstackEndpoint: false,
    useArnRegion: false,
    followRegionRedirects: false,
    disableS3ExpressSessionAuth: true,
    requestHandler: {
      connectionTimeout: bounds.connect_ms,
      socketTimeout: bounds.silence_ms,
      // All of them wait at the agent at times: that is no reason for a warning.
      socketAcquisitionWarningTimeout: bounds.whole_ms,
      httpAgent: guarded(new HttpAgent(connections)),
      httpsAgent: guarded(new HttpsAgent({ ...connections, ...ca })),
    },
  })
  boundAnswers(client)
  return client
}

/** The SDK reads an answer to its end, wherever that is. Of low priority: before it reads. */
const boundAnswers = (client: S3Client) =>
  client.middlewareStack.add(
    (next) => async (args) => {
      const output = await next(args)
      if (isAnswer(output.response)) output.response.body = bounded(output.response.body)
      return output
    },
    { step: "deserialize", priority: "low", name: "boundAnswers" },
  )

const isAnswer = (response: unknown): response is { body: NodeJS.ReadableStream } =>
  typeof response === "object" &&
  response !== null &&
  "body" in response &&
  typeof response.body === "object" &&
  response.body !== null &&
  "pipe" in response.body

const bounded = (body: NodeJS.ReadableStream) => {
  let bytes = 0
  const limit = new Transform({
    transform(part: Buffer, _encoding, done) {
      bytes += part.length
      done(bytes > answer_bytes_max ? tooLong() : null, part)
    },
  })
  body.once("error", (error) => limit.destroy(error))
  return body.pipe(limit)
}

const tooLong = () => Object.assign(new Error("too long"), { code: "AnswerTooLong" })

/** What a listing of more pages than anybody has fails with. */
export const endless = () =>
  new S3Failure({ kind: "odd", code: "", message: "lists without an end" })
