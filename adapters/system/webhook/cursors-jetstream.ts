/** Webhooks' cursors in a key-value bucket of JetStream: the last one of each webhook. */
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
/** Where they are, for what copies them. */
export const webhook_cursors = { stream, subjects: `$KV.${bucket}.>` } as const
const keyOf = (id: string) => `$KV.${bucket}.${id}`

const Kept = Schema.fromJsonString(WebhookCursor)
const decode = Schema.decodeUnknownEffect(Kept)
const encode = Schema.encodeSync(Kept)

const unavailable = (cause: unknown) => new CursorsUnavailable({ detail: causeText(cause) })

/** Makes the bucket if it is not there. */
export const webhookCursorsJetStream = (replicas: number) =>
  Layer.effect(
    WebhookCursors,
    Effect.gen(function* () {
      const { connection, js, jsm } = yield* NatsConnection
      yield* ensureStream(jsm, bucketStream(bucket, replicas))
      const link = yield* watchLink(connection)
      const asked = <A>(ask: () => Promise<A>) =>
        Effect.tryPromise({ try: () => overLink(link, ask), catch: unavailable })

      /** Of the leader: another server may not know the last one yet. */
      const last = Effect.fnUntraced(function* (id: string) {
        const query = { last_by_subj: keyOf(id) }
        const found = yield* asked(() => jsm.streams.getMessage(stream, query))
        // What was forgotten leaves a mark without a value.
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
            asked(() =>
              js.publish(keyOf(id), encode(cursor), { expect: { lastSubjectSequence: change } }),
            ),
            ({ seq }) => seq,
          ),
        // A deliverer that begins forgets every webhook that was ever deleted: most are forgotten.
        forget: Effect.fnUntraced(function* (id) {
          if ((yield* last(id)) === undefined) return
          yield* asked(() => {
            const mark = headers()
            mark.set("KV-Operation", "PURGE")
            mark.set("Nats-Rollup", "sub")
            return js.publish(keyOf(id), "", { headers: mark })
          })
        }),
      })
    }),
  )
