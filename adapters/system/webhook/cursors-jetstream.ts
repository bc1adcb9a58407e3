/** Webhooks' cursors in a JetStream key-value bucket: the last one of each webhook. */
import { headers } from "@nats-io/transport-node"
import { Effect, Layer, Schema } from "effect"
import {
  CursorsUnavailable,
  WebhookCursor,
  WebhookCursors,
} from "#actors/system/webhooks/cursors.ts"
import { bucketStream, ensureStream, NatsConnection, overLink, watchLink } from "#bus"
import { causeText } from "#schemas/cause-text.ts"

const bucket = "ALMANAC_WEBHOOKS"
const stream = `KV_${bucket}`
/** Location of the cursors, for backups. */
export const webhook_cursors = { stream, subjects: `$KV.${bucket}.>` } as const
const keyOf = (id: string) => `$KV.${bucket}.${id}`

const CursorText = Schema.fromJsonString(WebhookCursor)
const decode = Schema.decodeUnknownEffect(CursorText)
const encode = Schema.encodeSync(CursorText)

const unavailable = (cause: unknown) => new CursorsUnavailable({ detail: causeText(cause) })

/** The cursors in a bucket, which is created if missing. */
export const webhookCursorsJetStream = (replicas: number) =>
  Layer.effect(
    WebhookCursors,
    Effect.gen(function* () {
      const { connection, js, jsm } = yield* NatsConnection
      yield* ensureStream(jsm, bucketStream(bucket, replicas))
      const link = yield* watchLink(connection)
      const request = <A>(run: () => Promise<A>) =>
        Effect.tryPromise({ try: () => overLink(link, run), catch: unavailable })

      /** Reads from the leader: replicas may lag. */
      const last = Effect.fnUntraced(function* (id: string) {
        const query = { last_by_subj: keyOf(id) }
        const found = yield* request(() => jsm.streams.getMessage(stream, query))
        // A deleted cursor leaves a marker without a value.
        return found === null || found.data.length === 0 ? undefined : found
      })

      return WebhookCursors.of({
        load: Effect.fnUntraced(function* (id) {
          const found = yield* last(id)
          if (found === undefined) return undefined
          const cursor = yield* Effect.mapError(decode(found.string()), unavailable)
          return { cursor, change: found.seq }
        }),
        save: (id, cursor, change) =>
          Effect.map(
            request(() =>
              js.publish(keyOf(id), encode(cursor), { expect: { lastSubjectSequence: change } }),
            ),
            ({ seq }) => seq,
          ),
        // On startup a deliverer deletes cursors of all deleted webhooks; most are gone already.
        forget: Effect.fnUntraced(function* (id) {
          if ((yield* last(id)) === undefined) return
          yield* request(() => {
            const marker = headers()
            marker.set("KV-Operation", "PURGE")
            marker.set("Nats-Rollup", "sub")
            return js.publish(keyOf(id), "", { headers: marker })
          })
        }),
      })
    }),
  )
