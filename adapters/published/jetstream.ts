/**
 * Published events as a JetStream stream, `events.<service>.<aggregate>.<type>`.
 *
 * The stream can be rebuilt from the log, so our own server does not sync each message. A cluster
 * must, and a stream cannot be switched later, so a stream on an external server is always synced
 * because it may become replicated.
 */
import {
  DiscardPolicy,
  type JetStreamManager,
  PersistMode,
  type StoredMsg,
  type StreamInfo,
} from "@nats-io/jetstream"
import { headers, type Msg, type NatsConnection, nanos, nuid } from "@nats-io/transport-node"
import { Array as Arr, Deferred, Effect, Layer, Option, Stream } from "effect"
import { keepMirror } from "#adapters/published/mirror.ts"
import { events_stream, events_subject } from "#adapters/published/stream-name.ts"
import {
  EventsConnection,
  ensureStream,
  findStream,
  NatsServer,
  overLink,
  StreamMismatch,
  undefinedIfMissing,
  watchLink,
} from "#bus"
import { openConsumer, type Delivered as Placed, readMessages, type Source } from "#journal"
import {
  type Bounds,
  type Delivered,
  type EventFilter,
  EventsDiscarded,
  type Published,
  PublishedEvents,
  PublishFailed,
} from "#projections/published-events.ts"
import { causeText } from "#schemas/cause-text.ts"
import type { CloudEvent } from "#schemas/cloud-event.ts"
import { retention_bytes_default, retention_days_default } from "#schemas/system/settings.ts"

/** Deduplication window in milliseconds; the server's minimum is 100. */
const duplicate_window_ms = 1_000

/** Events per acknowledgement of the bus. */
const chunk_events_max = 256

/** Timeout of an acknowledgement in milliseconds: without syncs it takes a few. */
const ack_ms_max = 5_000

const subjectOf = ({ service, aggregate, event }: Published) =>
  `events.${service}.${aggregate}.${event.type}`

const failed = (error: unknown) => new PublishFailed({ detail: causeText(error) })

/**
 * Sends all events at once, each conditional on its predecessor, so that the last one is stored
 * only if all are, and its acknowledgement covers all. The first is conditional on the last
 * sequence.
 *
 * A synced stream gets one atomic batch. An unsynced one does not support batches, so each event
 * names the message before it. A replicated stream must not use this: in nats-server 2.15 the
 * rejection of one such message leaves all later ones without a response.
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
    const previous = events[i - 1]
    const checks: Array<readonly [string, string]> = [
      ["Nats-Msg-Id", event.id],
      ["Nats-Expected-Stream", events_stream],
    ]
    if (previous === undefined) checks.push(["Nats-Expected-Last-Sequence", `${after}`])
    else if (batch === undefined) checks.push(["Nats-Expected-Last-Msg-Id", previous.event.id])
    if (batch !== undefined) {
      checks.push(["Nats-Batch-Id", batch], ["Nats-Batch-Sequence", `${i + 1}`])
      if (i === last) checks.push(["Nats-Batch-Commit", "1"])
    }
    const options = { headers: headersOf(checks), timeout: ack_ms_max }
    if (i === last) {
      return connection.request(subjectOf(published), JSON.stringify(event), options)
    }
    connection.publish(subjectOf(published), JSON.stringify(event), options)
  }
  return Promise.reject(new Error("No events to publish."))
}

const utf8 = new TextEncoder()

/**
 * Headers in the client's wire format. The client's own class costs several times the rest of an
 * event, because it looks up and canonicalizes each name. Ours are unique and canonical.
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

/** Throws if the acknowledged event is not at its expected sequence. */
const checkStored = (response: Msg, sequence: number) => {
  const { seq, error } = response.json<Ack>()
  if (error !== undefined) throw new Error(error.description)
  if (seq !== sequence) throw new Error(`The event is at ${seq} instead of ${sequence}.`)
}

// Everything in the stream was written by `append`.
const delivered = (sequence: number, message: { json: <T>() => T }): Delivered => ({
  sequence,
  event: message.json<CloudEvent>(),
})

const storedEvent = (message: StoredMsg) => ({
  ...delivered(message.seq, message),
  published_ms: message.time.getTime(),
})

/** The oldest message after `sequence` of any of these subjects. */
export const nextOf = async (
  jsm: JetStreamManager,
  sequence: number,
  subjects: ReadonlyArray<string>,
): Promise<StoredMsg | undefined> => {
  const from = { seq: sequence + 1 }
  const found = await Promise.all(
    subjects.map((next_by_subj) => jsm.direct.getMessage(events_stream, { ...from, next_by_subj })),
  )
  return found.flatMap((one) => one ?? []).toSorted((one, other) => one.seq - other.seq)[0]
}

const cannot_replicate = new StreamMismatch({
  message:
    `The stream ${events_stream} was created with one replica and cannot get more: delete it ` +
    "with " +
    `\`nats stream rm ${events_stream}\`. It is recreated from the log.`,
  stream: events_stream,
  differences: [],
})

/** Whether the stream is not synced on each message. */
const isUnsynced = Effect.fnUntraced(function* (found: StreamInfo | undefined, replicas: number) {
  const server = yield* Effect.serviceOption(NatsServer)
  const is_own = Option.exists(server, ({ users }) => users !== undefined)
  const is_async = found?.config.persist_mode === PersistMode.Async
  if (is_async && replicas > 1) return yield* cannot_replicate
  return found === undefined ? is_own && replicas === 1 : is_async
})

/** Retention limits: the one that is reached first applies. */
export interface Retention {
  readonly bytes: number
  readonly days: number
}

const retention_default: Retention = {
  bytes: retention_bytes_default,
  days: retention_days_default,
}

const day_ms = 86_400_000

const streamOptions = (replicas: number, retention: Retention, is_unsynced: boolean) => ({
  name: events_stream,
  subjects: [events_subject],
  num_replicas: replicas,
  allow_direct: true,
  deny_delete: true,
  deny_purge: true,
  // Discards the oldest, so that a limit never stops the publisher: the log keeps them.
  discard: DiscardPolicy.Old,
  max_bytes: retention.bytes,
  max_age: nanos(retention.days * day_ms),
  ...(is_unsynced ? { persist_mode: PersistMode.Async } : { allow_atomic: true }),
  // Each event is conditional on its sequence, so no deduplication is needed.
  duplicate_window: nanos(duplicate_window_ms),
})

/** Options that may be changed on an existing stream: its retention. */
const changeable = ["max_bytes", "max_age"] as const

/** Creates the stream if it is missing. Fails with StreamMismatch if its options differ. */
export const publishedEventsJetStream = (replicas: number, retention = retention_default) =>
  Layer.effect(
    PublishedEvents,
    Effect.gen(function* () {
      const { connection, jsm } = yield* EventsConnection
      const found = yield* findStream(jsm, events_stream)
      const is_unsynced = yield* isUnsynced(found, replicas)
      const { first_seq } = found?.config ?? {}
      const begin = first_seq === undefined ? {} : { first_seq }
      const options = { ...streamOptions(replicas, retention, is_unsynced), ...begin }
      yield* ensureStream(jsm, options, changeable)
      yield* keepMirror

      const link = yield* watchLink(connection)
      const attempt = <A>(run: () => Promise<A>) =>
        Effect.tryPromise({ try: () => overLink(link, run), catch: failed })
      const info = attempt(() => jsm.streams.info(events_stream).catch(undefinedIfMissing))
      const replaced = yield* watchStream(info)

      const source = { connection, jsm, link, name: events_stream }
      const follow = (sequence: number, wanted: EventFilter) =>
        readMessages(source, { filter: subjectsOf(wanted), after: sequence }).pipe(
          Stream.mapError(failed),
          Stream.mapArrayEffect(checkGaps(info, sequence)),
          Stream.interruptWhen(replaced),
        )

      return PublishedEvents.of({
        bounds: Effect.map(info, (found) => found && boundsOf(found)),
        last: Effect.gen(function* () {
          const last = (yield* info)?.state.last_seq ?? 0
          if (last === 0) return undefined
          const message = yield* attempt(() => jsm.streams.getMessage(events_stream, { seq: last }))
          return message === null ? undefined : delivered(message.seq, message)
        }),
        at: Effect.fnUntraced(function* (seq) {
          if (seq < 1) return undefined
          const message = yield* attempt(() => jsm.streams.getMessage(events_stream, { seq }))
          return message === null ? undefined : storedEvent(message)
        }),
        next: Effect.fnUntraced(function* (sequence, wanted) {
          const subjects = subjectsOf(wanted)
          const found = yield* attempt(() => nextOf(jsm, sequence, subjects))
          return found && storedEvent(found)
        }),
        append: Effect.fnUntraced(function* (events, after) {
          for (let done = 0; done < events.length; done += chunk_events_max) {
            const chunk = events.slice(done, done + chunk_events_max)
            const before = after + done
            yield* attempt(async () =>
              checkStored(
                await send(connection, chunk, before, is_unsynced),
                before + chunk.length,
              ),
            )
          }
          return after + events.length
        }),
        follow,
        ready: attempt(() => checkReadable(source)),
        recreate: (after) =>
          attempt(async () => {
            await jsm.streams.delete(events_stream).catch(undefinedIfMissing)
            const options = streamOptions(replicas, retention, is_unsynced)
            await jsm.streams.add({ ...options, first_seq: after + 1 })
          }),
      })
    }),
  )

/** Checks that a consumer can be opened. */
const checkReadable = async (source: Source) => {
  const consumer = await openConsumer(source, { filter_subject: restored_subject })
  await consumer.close()
}

const boundsOf = ({ state }: StreamInfo): Bounds => ({
  first: Math.max(1, state.first_seq),
  last: state.last_seq,
})

/** Maximum subjects of one consumer: beyond that it receives all, and its reader filters. */
const subjects_max = 64

const restored_subject = "events.system.restoration.state_restored"

/** The wanted subjects plus that of restores, without overlaps. */
export const subjectsOf = ({ services = [], types = [] }: EventFilter): ReadonlyArray<string> => {
  const any = (names: ReadonlyArray<string>) => (names.length === 0 ? ["*"] : [...new Set(names)])
  const chosen = any(services).flatMap((service) =>
    any(types).map((type) => `events.${service}.*.${type}`),
  )
  if (chosen.length >= subjects_max) return [events_subject]
  const has = (names: ReadonlyArray<string>, name: string) =>
    names.length === 0 || names.includes(name)
  const is_within = has(services, "system") && has(types, "state_restored")
  return is_within ? chosen : [...chosen, restored_subject]
}

/** Cache time of the stream's first sequence for readers in its newer half, in ms. */
const check_ms = 5_000

/**
 * Passes on only pages without missing events. A filtered reader cannot see a gap left by discarded
 * events, so the stream's first sequence is checked after each page.
 */
const checkGaps = (
  info: Effect.Effect<StreamInfo | undefined, PublishFailed>,
  sequence: number,
) => {
  let after = sequence
  let checked_ms = Number.NEGATIVE_INFINITY
  return Effect.fnUntraced(function* (page: Arr.NonEmptyReadonlyArray<Placed>) {
    const is_next = page[0].position === after + 1
    if (!is_next && performance.now() - checked_ms > check_ms) {
      const found = yield* info
      const { first, last } = found === undefined ? { first: 1, last: 0 } : boundsOf(found)
      if (after + 1 < first) return yield* new EventsDiscarded({ after })
      // The older half of the stream is not overwritten within that time.
      if (after > (first + last) / 2) checked_ms = performance.now()
    }
    after = page.at(-1)?.position ?? after
    return Arr.map(page, ({ position, message }) => delivered(position, message))
  })
}

/** Interval in milliseconds between two checks that the stream is still the same. */
const watch_ms = 2_000

/** Fails whenever the stream was replaced: readers start over. */
const watchStream = Effect.fnUntraced(function* (
  info: Effect.Effect<StreamInfo | undefined, PublishFailed>,
) {
  let ending = yield* Deferred.make<never, PublishFailed>()
  let created = (yield* info)?.created
  const check = Effect.gen(function* () {
    yield* Effect.sleep(watch_ms)
    const now = (yield* info)?.created
    if (now === undefined || now === created) return
    created = now
    const before = ending
    ending = yield* Deferred.make<never, PublishFailed>()
    yield* Deferred.fail(before, failed("The stream of published events was recreated."))
  })
  yield* Effect.forkScoped(Effect.forever(Effect.ignore(check)))
  return Effect.suspend(() => Deferred.await(ending))
})
