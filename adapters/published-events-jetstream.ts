/**
 * Published events as a JetStream stream, `events.<service>.<aggregate>.<type>`.
 *
 * What is in it can be made again from the log, so our own server does not sync each message. One
 * of a cluster must, and a stream is never changed from the one to the other: so no stream on a
 * server of somebody else begins without, as long as it may become one of several copies.
 */
import { type JetStreamManager, PersistMode } from "@nats-io/jetstream"
import { headers, type Msg, type NatsConnection, nanos, nuid } from "@nats-io/transport-node"
import { Effect, Layer, Option, Stream } from "effect"
import { readMessages } from "#adapters/log-reader.ts"
import { events_stream, events_subject } from "#adapters/nats-config.ts"
import { EventsConnection } from "#adapters/nats-connection.ts"
import { overLink, watchLink } from "#adapters/nats-link.ts"
import { NatsServer } from "#adapters/nats-server.ts"
import { ensureStream, findStream, StreamMismatch } from "#adapters/nats-stream.ts"
import { keepMirror } from "#adapters/published/mirror.ts"
import {
  type Delivered,
  type Published,
  PublishedEvents,
  PublishFailed,
  type Wanted,
} from "#projections/published-events.ts"
import { causeText } from "#schemas/cause-text.ts"
import type { CloudEvent } from "#schemas/cloud-event.ts"

/** Milliseconds in which the server remembers ids; it wants at least 100. */
const duplicate_window_ms = 1_000

/** Events that one answer of the bus is for. */
const chunk_events_max = 256

/** Milliseconds until an answer is given up: nothing is synced, so it is there in a few. */
const answer_ms_max = 5_000

const subjectOf = ({ service, aggregate, event }: Published) =>
  `events.${service}.${aggregate}.${event.type}`

const failed = (error: unknown) => new PublishFailed({ detail: causeText(error) })

/**
 * Sends all in one go, each only to be kept right after the one before it: so the last one is kept
 * only if all are, and its answer is the answer for all. The first names the sequence before it.
 *
 * As one atomic batch where the stream is synced. Where it is not it takes none, and each names the
 * message before it, which a stream of several copies must not be told: the refusal of one such
 * message, as of nats-server 2.15, leaves all later ones without an answer.
 */
const send = (
  connection: NatsConnection,
  events: ReadonlyArray<Published>,
  after: number,
  is_unsynced: boolean,
) => {
  const last = events.length - 1
  const batch = is_unsynced || last === 0 ? undefined : nuid.next()
  for (const [i, published] of events.entries()) {
    const { event } = published
    const before = events[i - 1]
    const checks: Array<readonly [string, string]> = [
      ["Nats-Msg-Id", event.id],
      ["Nats-Expected-Stream", events_stream],
    ]
    if (before === undefined) checks.push(["Nats-Expected-Last-Sequence", `${after}`])
    else if (batch === undefined) checks.push(["Nats-Expected-Last-Msg-Id", before.event.id])
    if (batch !== undefined) {
      checks.push(["Nats-Batch-Id", batch], ["Nats-Batch-Sequence", `${i + 1}`])
      if (i === last) checks.push(["Nats-Batch-Commit", "1"])
    }
    const options = { headers: headersOf(checks), timeout: answer_ms_max }
    if (i === last) {
      return connection.request(subjectOf(published), JSON.stringify(event), options)
    }
    connection.publish(subjectOf(published), JSON.stringify(event), options)
  }
  return Promise.reject(new Error("There is nothing to publish."))
}

const utf8 = new TextEncoder()

/**
 * The headers as the client's own would be sent, which cost several times what the rest of an event
 * does: each name is looked for among the others, and written in its proper case. Ours are.
 */
export const headersOf = (checks: ReadonlyArray<readonly [string, string]>) => {
  let text = "NATS/1.0\r\n"
  for (const [name, value] of checks) text += `${name}: ${value}\r\n`
  const encode = () => utf8.encode(`${text}\r\n`)
  return Object.assign(headers(), { encode })
}

interface Ack {
  readonly seq?: number
  readonly error?: { readonly description: string }
}

/** Throws when the event that was answered for is not at the place where it must be. */
const proveKept = (answer: Msg, sequence: number) => {
  const { seq, error } = answer.json<Ack>()
  if (error !== undefined) throw new Error(error.description)
  if (seq !== sequence) throw new Error(`The event is at ${seq} instead of ${sequence}.`)
}

// What is in the stream came through `append`.
const delivered = (sequence: number, message: { json: <T>() => T }): Delivered => ({
  sequence,
  event: message.json<CloudEvent>(),
})

const unraisable = new StreamMismatch({
  message:
    `The stream ${events_stream} was made for one copy and cannot get more: remove it by ` +
    `\`nats stream rm ${events_stream}\`. It is written anew from the log.`,
  stream: events_stream,
  differences: [],
})

/** Whether the stream is not to be synced with each message. */
const isUnsynced = Effect.fnUntraced(function* (jsm: JetStreamManager, replicas: number) {
  const server = yield* Effect.serviceOption(NatsServer)
  const is_own = Option.exists(server, ({ workers }) => workers !== undefined)
  const found = yield* findStream(jsm, events_stream)
  const is_found_so = found?.config.persist_mode === PersistMode.Async
  if (is_found_so && replicas > 1) return yield* unraisable
  return found === undefined ? is_own && replicas === 1 : is_found_so
})

/** Makes the stream if need be. StreamMismatch when it is another than this one. */
export const publishedEventsJetStream = (replicas: number) =>
  Layer.effect(
    PublishedEvents,
    Effect.gen(function* () {
      const { connection, jsm } = yield* EventsConnection
      const is_unsynced = yield* isUnsynced(jsm, replicas)
      yield* ensureStream(jsm, {
        name: events_stream,
        subjects: [events_subject],
        num_replicas: replicas,
        allow_direct: true,
        deny_delete: true,
        deny_purge: true,
        ...(is_unsynced ? { persist_mode: PersistMode.Async } : { allow_atomic: true }),
        // Each event is expected by its place, so nothing is left to find doubles by.
        duplicate_window: nanos(duplicate_window_ms),
      })
      yield* keepMirror

      const link = yield* watchLink(connection)
      const attempt = <A>(ask: () => Promise<A>) =>
        Effect.tryPromise({ try: () => overLink(link, ask), catch: failed })

      const source = { connection, jsm, link, name: events_stream }
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
        at: Effect.fnUntraced(function* (seq) {
          if (seq < 1) return undefined
          const message = yield* attempt(() => jsm.streams.getMessage(events_stream, { seq }))
          if (message === null) return undefined
          return { ...delivered(seq, message), published_ms: message.time.getTime() }
        }),
        append: Effect.fnUntraced(function* (events, after) {
          for (let done = 0; done < events.length; done += chunk_events_max) {
            const chunk = events.slice(done, done + chunk_events_max)
            const before = after + done
            yield* attempt(async () =>
              proveKept(await send(connection, chunk, before, is_unsynced), before + chunk.length),
            )
          }
          return after + events.length
        }),
        follow,
      })
    }),
  )
