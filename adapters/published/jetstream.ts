/**
 * Published events as a JetStream stream, `events.<service>.<aggregate>.<type>`.
 *
 * What is in it can be made again from the log, so our own server does not sync each message. One
 * of a cluster must, and a stream is never changed from the one to the other: so no stream on a
 * server of somebody else begins without, as long as it may become one of several copies.
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
  EventsDiscarded,
  type Published,
  PublishedEvents,
  PublishFailed,
  type Wanted,
} from "#projections/published-events.ts"
import { causeText } from "#schemas/cause-text.ts"
import type { CloudEvent } from "#schemas/cloud-event.ts"
import { retention_bytes_default, retention_days_default } from "#schemas/system/settings.ts"

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

const keptIn = (message: StoredMsg) => ({
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

const unraisable = new StreamMismatch({
  message:
    `The stream ${events_stream} was made for one copy and cannot get more: remove it by ` +
    `\`nats stream rm ${events_stream}\`. It is written anew from the log.`,
  stream: events_stream,
  differences: [],
})

/** Whether the stream is not to be synced with each message. */
const isUnsynced = Effect.fnUntraced(function* (found: StreamInfo | undefined, replicas: number) {
  const server = yield* Effect.serviceOption(NatsServer)
  const is_own = Option.exists(server, ({ users }) => users !== undefined)
  const is_found_so = found?.config.persist_mode === PersistMode.Async
  if (is_found_so && replicas > 1) return yield* unraisable
  return found === undefined ? is_own && replicas === 1 : is_found_so
})

/** How much is kept: whichever limit is reached first. */
export interface Retention {
  readonly bytes: number
  readonly days: number
}

const retention_default: Retention = {
  bytes: retention_bytes_default,
  days: retention_days_default,
}

const day_ms = 86_400_000

const wanted = (replicas: number, retention: Retention, is_unsynced: boolean) => ({
  name: events_stream,
  subjects: [events_subject],
  num_replicas: replicas,
  allow_direct: true,
  deny_delete: true,
  deny_purge: true,
  // The oldest go, so that a limit never stops the publisher: the log has them for ever.
  discard: DiscardPolicy.Old,
  max_bytes: retention.bytes,
  max_age: nanos(retention.days * day_ms),
  ...(is_unsynced ? { persist_mode: PersistMode.Async } : { allow_atomic: true }),
  // Each event is expected by its place, so nothing is left to find doubles by.
  duplicate_window: nanos(duplicate_window_ms),
})

/** What may change of a stream that can be made again: how much it keeps. */
const changeable = ["max_bytes", "max_age"] as const

/** Makes the stream if need be. StreamMismatch when it is another than this one. */
export const publishedEventsJetStream = (replicas: number, retention = retention_default) =>
  Layer.effect(
    PublishedEvents,
    Effect.gen(function* () {
      const { connection, jsm } = yield* EventsConnection
      const found = yield* findStream(jsm, events_stream)
      const is_unsynced = yield* isUnsynced(found, replicas)
      const { first_seq } = found?.config ?? {}
      const begin = first_seq === undefined ? {} : { first_seq }
      const asked = { ...wanted(replicas, retention, is_unsynced), ...begin }
      yield* ensureStream(jsm, asked, changeable)
      yield* keepMirror

      const link = yield* watchLink(connection)
      const attempt = <A>(ask: () => Promise<A>) =>
        Effect.tryPromise({ try: () => overLink(link, ask), catch: failed })
      const info = attempt(() => jsm.streams.info(events_stream).catch(undefinedIfMissing))
      const replaced = yield* watchStream(info)

      const source = { connection, jsm, link, name: events_stream }
      const follow = (sequence: number, wanted: Wanted) =>
        readMessages(source, { filter: subjectsOf(wanted), after: sequence }).pipe(
          Stream.mapError(failed),
          Stream.mapArrayEffect(proven(info, sequence)),
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
          return message === null ? undefined : keptIn(message)
        }),
        next: Effect.fnUntraced(function* (sequence, wanted) {
          const subjects = subjectsOf(wanted)
          const found = yield* attempt(() => nextOf(jsm, sequence, subjects))
          return found && keptIn(found)
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
        ready: attempt(() => proveReadable(source)),
        recreate: (after) =>
          attempt(async () => {
            await jsm.streams.delete(events_stream).catch(undefinedIfMissing)
            const asked = wanted(replicas, retention, is_unsynced)
            await jsm.streams.add({ ...asked, first_seq: after + 1 })
          }),
      })
    }),
  )

/** Opens a reader and closes it. */
const proveReadable = async (source: Source) => {
  const consumer = await openConsumer(source, { filter_subject: restored_subject })
  await consumer.close()
}

const boundsOf = ({ state }: StreamInfo): Bounds => ({
  first: Math.max(1, state.first_seq),
  last: state.last_seq,
})

/** Subjects of one consumer: beyond so many it gets all, and its reader drops the others. */
const subjects_max = 64

const restored_subject = "events.system.restoration.state_restored"

/** The subjects of what is wanted, and of restores; none of them is within another. */
export const subjectsOf = ({ services = [], types = [] }: Wanted): ReadonlyArray<string> => {
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

/** How long a look at the stream's beginning holds for a reader in its newer half, in ms. */
const look_ms = 5_000

/**
 * Passes pages on that nothing is missing in. What is discarded before it is read leaves no gap
 * that a reader with a filter could see: it looks where the stream begins after a page has come.
 */
const proven = (info: Effect.Effect<StreamInfo | undefined, PublishFailed>, sequence: number) => {
  let after = sequence
  let looked_ms = Number.NEGATIVE_INFINITY
  return Effect.fnUntraced(function* (page: Arr.NonEmptyReadonlyArray<Placed>) {
    const is_next = page[0].position === after + 1
    if (!is_next && performance.now() - looked_ms > look_ms) {
      const found = yield* info
      const { first, last } = found === undefined ? { first: 1, last: 0 } : boundsOf(found)
      if (after + 1 < first) return yield* new EventsDiscarded({ after })
      // Half of what is kept is not written within the time.
      if (after > (first + last) / 2) looked_ms = performance.now()
    }
    after = page.at(-1)?.position ?? after
    return Arr.map(page, ({ position, message }) => delivered(position, message))
  })
}

/** How often a process looks whether the stream is still the same, in milliseconds. */
const watch_ms = 2_000

/** Fails each time that the stream is another than before: its readers begin again. */
const watchStream = Effect.fnUntraced(function* (
  info: Effect.Effect<StreamInfo | undefined, PublishFailed>,
) {
  let ending = yield* Deferred.make<never, PublishFailed>()
  let made = (yield* info)?.created
  const look = Effect.gen(function* () {
    yield* Effect.sleep(watch_ms)
    const now = (yield* info)?.created
    if (now === undefined || now === made) return
    made = now
    const before = ending
    ending = yield* Deferred.make<never, PublishFailed>()
    yield* Deferred.fail(before, failed("The stream of published events was made again."))
  })
  yield* Effect.forkScoped(Effect.forever(Effect.ignore(look)))
  return Effect.suspend(() => Deferred.await(ending))
})
