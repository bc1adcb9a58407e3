/** Paged reads of a JetStream stream that survive lost consumers, connections and servers. */
import { type ConsumerConfig, DeliverPolicy, JetStreamApiError } from "@nats-io/jetstream"
import { Cause, Effect, Result, Stream } from "effect"
import { overLink } from "#bus"
import type { LogUnavailable } from "#events/log.ts"
import { type Consumer, type Delivered, openConsumer, type Source } from "./consumer.ts"
import { readFailure } from "./failure.ts"

/** Maximum messages of one page. */
const page_messages_max = 500

/** Milliseconds between attempts to open a consumer. */
const pause_ms = 50

/** Timeout in milliseconds of a bounded read on a log that does not respond. */
const bounded_read_ms = 10_000

/** Refusals by a responding server after which even an unbounded read fails: 10 s. */
const refusals_max = 200

/**
 * Milliseconds without a message after which a reader checks the stream's leader for one; doubled
 * each time, up to the maximum. A consumer that still delivers nothing is replaced: it may be on a
 * server whose replica cannot be read, which sends heartbeats but no messages (2.15.1). The time
 * doubles so that a consumer that only has many messages to skip can finish.
 */
const probe_ms = 5_000
const probe_ms_max = 60_000

export interface Reading {
  /** Subjects to read, with wildcards; if there are several, they must not overlap. */
  readonly filter: string | ReadonlyArray<string>
  /** The last position that has been read. */
  readonly after: number
  /** The last position to read, evaluated at the start; without it the read never ends. */
  readonly until?: Effect.Effect<number, LogUnavailable>
  /** Whether to begin with the last message of each subject instead of all messages. */
  readonly lasts?: boolean
}

/**
 * Reads messages in order, each once, in pages. With `lasts`, a subject can appear again, newer, if
 * it changed while the connection was lost.
 */
export const readMessages = (
  source: Source,
  reading: Reading,
): Stream.Stream<Delivered, LogUnavailable> =>
  Stream.unwrap(
    Effect.gen(function* () {
      const end = reading.until ?? Effect.succeed(Number.POSITIVE_INFINITY)
      let until = yield* end
      let position = reading.after
      let consumer: Consumer | undefined
      let wait_ms = probe_ms
      let is_stalled = false
      const close = Effect.promise(async () => consumer?.close())
      yield* Effect.addFinalizer(() => close)

      const open = Effect.gen(function* () {
        // The last message of a subject may have changed and now be beyond the end.
        if (reading.lasts && consumer) until = yield* end
        yield* close
        yield* openWithRetries(source, reading, async () => {
          consumer = await openConsumer(source, consumerConfig(reading, position))
        })
      })

      const pull: Effect.Effect<Page, LogUnavailable | Cause.Done> = Effect.gen(function* () {
        while (position < until) {
          const [first, ...others] = page(consumer?.take(page_messages_max), position, until)
          if (first) {
            position = others.at(-1)?.position ?? first.position
            wait_ms = probe_ms
            is_stalled = false
            return [first, ...others]
          }
          if (!consumer || consumer.isBroken() || is_stalled) {
            yield* open
            is_stalled = false
          } else if (!(yield* waitForMessages(consumer, wait_ms))) {
            wait_ms = Math.min(2 * wait_ms, probe_ms_max)
            is_stalled = yield* isBehind(source, reading, position)
          }
        }
        return yield* Cause.done()
      })
      return Stream.fromPull(Effect.succeed(pull))
    }),
  )

type Page = readonly [Delivered, ...Array<Delivered>]

/** The messages after `after`, up to the first at or beyond `until`. */
const page = (taken: ReadonlyArray<Delivered> = [], after: number, until: number) => {
  const fresh = taken.filter(({ position }) => position > after)
  const last = fresh.findIndex(({ position }) => position >= until)
  return last < 0 ? fresh : fresh.slice(0, last + 1)
}

/** Waits for messages or the end of the consumer; false on timeout. */
const waitForMessages = (consumer: Consumer, ms: number) =>
  Effect.callback<boolean>((resume) => {
    const timer = setTimeout(() => resume(Effect.succeed(false)), ms)
    const stop = () => clearTimeout(timer)
    consumer.onReady(() => {
      stop()
      resume(Effect.succeed(true))
    })
    return Effect.sync(stop)
  })

/** Whether the leader has a message after `position`; false if it does not respond. */
const isBehind = ({ jsm, link, name }: Source, { filter }: Reading, position: number) =>
  Effect.tryPromise(() =>
    overLink(link, () =>
      Promise.all(
        subjectsOf(filter).map((last_by_subj) => jsm.streams.getMessage(name, { last_by_subj })),
      ),
    ),
  ).pipe(
    Effect.map((lasts) => lasts.some((last) => last !== null && last.seq > position)),
    Effect.orElseSucceed(() => false),
  )

const subjectsOf = (filter: Reading["filter"]) => (typeof filter === "string" ? [filter] : filter)

const filtered = (filter: Reading["filter"]): Partial<ConsumerConfig> => {
  const [first, ...others] = subjectsOf(filter)
  if (first === undefined) return {}
  return others.length === 0 ? { filter_subject: first } : { filter_subjects: [first, ...others] }
}

/** Opens a consumer, with retries within the limits of this read. */
const openWithRetries = Effect.fnUntraced(function* (
  { link }: Source,
  { until }: Reading,
  open: () => Promise<void>,
) {
  const since = performance.now()
  for (let refusals = 0; ; ) {
    // Uninterruptible: otherwise an open consumer could leak.
    const opened = yield* Effect.tryPromise({ try: open, catch: (cause) => cause }).pipe(
      Effect.uninterruptible,
      Effect.result,
    )
    if (Result.isSuccess(opened)) return
    if (opened.failure instanceof JetStreamApiError) refusals++
    const late = until && performance.now() - since > bounded_read_ms
    if (late || refusals > refusals_max || link.isClosed()) {
      return yield* readFailure(opened.failure)
    }
    yield* Effect.sleep(pause_ms)
  }
})

const consumerConfig = ({ filter, lasts }: Reading, position: number): Partial<ConsumerConfig> =>
  lasts
    ? { ...filtered(filter), deliver_policy: DeliverPolicy.LastPerSubject }
    : {
        ...filtered(filter),
        deliver_policy: DeliverPolicy.StartSequence,
        opt_start_seq: position + 1,
      }
