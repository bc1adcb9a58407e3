/**
 * Published events as a JetStream stream, `events.<service>.<aggregate>.<type>`.
 *
 * What is in it can be made again from the log, so it is not synced with each message.
 */
import { PersistMode } from "@nats-io/jetstream"
import { nanos } from "@nats-io/transport-node"
import { Effect, Layer, Stream } from "effect"
import { readMessages } from "#adapters/log-reader.ts"
import { events_stream, events_subject } from "#adapters/nats-config.ts"
import { EventsConnection } from "#adapters/nats-connection.ts"
import { watchLink } from "#adapters/nats-link.ts"
import { ensureStream } from "#adapters/nats-stream.ts"
import {
  type Delivered,
  type Published,
  PublishedEvents,
  PublishFailed,
  type Wanted,
} from "#projections/published-events.ts"
import type { CloudEvent } from "#schemas/cloud-event.ts"

/** Milliseconds in which the server remembers ids; it wants at least 100. */
const duplicate_window_ms = 1_000

/** Events under way to the bus at the same moment. */
const append_events_max = 256

const subjectOf = ({ service, aggregate, event }: Published) =>
  `events.${service}.${aggregate}.${event.type}`

const failed = (error: unknown) =>
  new PublishFailed({ detail: error instanceof Error ? error.message : String(error) })

const attempt = <A>(ask: () => Promise<A>) => Effect.tryPromise({ try: ask, catch: failed })

// What is in the stream came through `append`.
const delivered = (sequence: number, message: { json: <T>() => T }): Delivered => ({
  sequence,
  event: message.json<CloudEvent>(),
})

/** Makes the stream if need be. StreamMismatch when it is another than this one. */
export const publishedEventsJetStream = (replicas: number) =>
  Layer.effect(
    PublishedEvents,
    Effect.gen(function* () {
      const { connection, js, jsm } = yield* EventsConnection
      yield* ensureStream(jsm, {
        name: events_stream,
        subjects: [events_subject],
        num_replicas: replicas,
        allow_direct: true,
        deny_delete: true,
        deny_purge: true,
        persist_mode: PersistMode.Async,
        // Each event is expected by its place, so nothing is left to find doubles by.
        duplicate_window: nanos(duplicate_window_ms),
      })

      // Each names the one before it by id, for a sequence may be reached by another's events.
      const publish = (
        published: Published,
        before: { lastSequence: number } | { lastMsgID: string },
      ) =>
        js.publish(subjectOf(published), JSON.stringify(published.event), {
          msgID: published.event.id,
          expect: before,
        })

      const source = { connection, jsm, link: yield* watchLink(connection), name: events_stream }
      const follow = (sequence: number, { service = "*", type = "*" }: Wanted) =>
        readMessages(source, { filter: `events.${service}.*.${type}`, after: sequence }).pipe(
          Stream.map(({ position, message }) => delivered(position, message)),
          Stream.mapError(failed),
        )

      return PublishedEvents.of({
        last: Effect.gen(function* () {
          const { state } = yield* attempt(() => jsm.streams.info(events_stream))
          if (state.last_seq === 0) return undefined
          const query = { seq: state.last_seq }
          const message = yield* attempt(() => jsm.streams.getMessage(events_stream, query))
          if (message === null) return yield* failed(`Event ${query.seq} is gone.`)
          return delivered(message.seq, message)
        }),
        append: Effect.fnUntraced(function* (events, after) {
          for (let done = 0; done < events.length; done += append_events_max) {
            const some = events.slice(done, done + append_events_max)
            const before = (i: number) => {
              const previous = some[i - 1]
              return previous ? { lastMsgID: previous.event.id } : { lastSequence: after + done }
            }
            yield* attempt(() => Promise.all(some.map((one, i) => publish(one, before(i)))))
          }
          return after + events.length
        }),
        follow,
      })
    }),
  )
