/**
 * Leases in a JetStream key-value bucket: one key per lease, whose value is the holder and which
 * expires after the TTL.
 */
import { JetStreamApiCodes, JetStreamApiError, type StoredMsg } from "@nats-io/jetstream"
import { headers, nanos, nuid } from "@nats-io/transport-node"
import { Effect, Layer } from "effect"
import { Leases } from "#actors/leases.ts"
import {
  type LeaseOptions,
  type LeaseToken,
  LeaseUnknown,
  leases,
} from "#adapters/leases/holder.ts"
import {
  bucketStream,
  ensureStream,
  NatsConnection,
  overLink,
  undefinedIfMissing,
  type WantedStream,
  watchLink,
} from "#bus"
import { readFailure } from "#journal"

export interface LeaseBucketOptions extends LeaseOptions {
  readonly bucket: string
  /** Copies in a cluster, 1 if absent. */
  readonly replicas?: number
}

/** Milliseconds that the marker of an expired lease is kept, for watchers of the bucket. */
const marker_ttl_ms = 60_000

/** One holder's leases in a bucket, which is created if missing. */
export const leasesJetStream = (options: LeaseBucketOptions) =>
  Layer.effect(
    Leases,
    Effect.gen(function* () {
      const { connection, js, jsm } = yield* NatsConnection
      const { bucket, holder, ttl_ms } = options
      const stream = `KV_${bucket}`
      yield* ensureStream(jsm, streamOptions(options))
      const link = yield* watchLink(connection)

      /** Distinguishes this process from earlier ones of the holder, whose leases it takes over. */
      const own_value = JSON.stringify({ holder, life: nuid.next() })
      const key = (name: string) => `$KV.${bucket}.${name}`

      const request = <A>(run: () => Promise<A>) =>
        Effect.tryPromise({
          try: () => overLink(link, run),
          catch: (cause) => new LeaseUnknown({ detail: String(cause) }),
        })

      // Read from the leader: replicas may lag.
      const last = (name: string) => jsm.streams.getMessage(stream, { last_by_subj: key(name) })

      const put = (name: string, expected: LeaseToken) =>
        js
          .publish(key(name), own_value, {
            ttl: `${ttl_ms}ms`,
            expect: { lastSubjectSequence: expected },
          })
          .then(({ seq }) => seq, undefinedAfterConflict)

      /** The last change if this process made it: the response to a renewal may have been lost. */
      const latestIfOwn = async (name: string, token: LeaseToken) => {
        const found = await last(name)
        return found?.string() === own_value && found.seq !== token ? found.seq : undefined
      }

      return leases(options, {
        take: (name, takeover) =>
          request(async () => {
            const found = await last(name)
            const is_ours =
              found && (found.string() === own_value || (takeover && holderOf(found) === holder))
            return !found || isFree(found) || is_ours ? put(name, found?.seq ?? 0) : undefined
          }),
        renew: (name, token) =>
          request(async () => {
            const renewed = await put(name, token)
            if (renewed !== undefined) return renewed
            const later = await latestIfOwn(name, token)
            return later === undefined ? undefined : put(name, later)
          }),
        holderOf: (name) =>
          request(async () => {
            const found = await last(name)
            return found === null ? undefined : holderOf(found)
          }),
        release: (name, token) =>
          request(async () => {
            const deleteLease = (expected: LeaseToken) => {
              const marker = headers()
              marker.set("KV-Operation", "DEL")
              const expect = { lastSubjectSequence: expected }
              return js.publish(key(name), "", { headers: marker, expect }).then(() => true)
            }
            if (await deleteLease(token).catch(undefinedAfterConflict)) return
            const later = await latestIfOwn(name, token)
            if (later !== undefined) await deleteLease(later).catch(undefinedAfterConflict)
          }),
      })
    }),
  )

/** The current holders; empty if the bucket does not exist. Fails with LogUnavailable. */
export const leasesHeld = Effect.fnUntraced(function* (bucket: string) {
  const { jsm } = yield* NatsConnection
  const [name, head] = [`KV_${bucket}`, `$KV.${bucket}.`]
  return yield* Effect.tryPromise({
    try: async () => {
      const filter = { subjects_filter: `${head}>` }
      const info = await jsm.streams.info(name, filter).catch(undefinedIfMissing)
      const held: Array<{ readonly name: string; readonly holder: string }> = []
      for (const last_by_subj of Object.keys(info?.state.subjects ?? {}).toSorted()) {
        const found = await jsm.streams.getMessage(name, { last_by_subj })
        const holder = found === null ? undefined : holderOf(found)
        if (holder !== undefined) held.push({ name: last_by_subj.slice(head.length), holder })
      }
      return held
    },
    catch: readFailure,
  })
})

/** The bucket's stream. On disk, so that a restart does not release leases. */
const streamOptions = ({ bucket, replicas = 1 }: LeaseBucketOptions) =>
  ({
    ...bucketStream(bucket, replicas),
    allow_msg_ttl: true,
    subject_delete_marker_ttl: nanos(marker_ttl_ms),
  }) satisfies WantedStream

const undefinedAfterConflict = (cause: unknown) => {
  if (
    cause instanceof JetStreamApiError &&
    (cause.code === JetStreamApiCodes.StreamWrongLastSequence ||
      cause.code === JetStreamApiCodes.StreamWrongLastSequenceUnknown)
  ) {
    return undefined
  }
  throw cause
}

/** Released or expired: both leave a marker without a value. */
const isFree = ({ data }: StoredMsg) => data.length === 0

const holderOf = (message: StoredMsg) =>
  isFree(message) ? undefined : message.json<{ readonly holder?: string }>().holder
