/** Creates a stream, or verifies that the existing one has the wanted configuration. */
import {
  JetStreamApiError,
  type JetStreamManager,
  type StreamConfig,
  type StreamInfo,
} from "@nats-io/jetstream"
import { Effect, Schedule, Schema } from "effect"
import { causeText } from "#schemas/cause-text.ts"
import { isTransient } from "../connection/transient.ts"

/**
 * A stream's configuration differs from the wanted one. Servers silently drop unknown options and
 * rewrite some known ones: this error makes that visible.
 */
export class StreamMismatch extends Schema.TaggedError<StreamMismatch>()("StreamMismatch", {
  message: Schema.String,
  stream: Schema.String,
  differences: Schema.Array(
    Schema.Struct({ option: Schema.String, wanted: Schema.Unknown, found: Schema.Unknown }),
  ),
}) {}

/** The server did not respond, or refused to create or change the stream. */
export class StreamFailed extends Schema.TaggedError<StreamFailed>()("StreamFailed", {
  message: Schema.String,
  stream: Schema.String,
}) {}

/** Options by name: the server may send options that the client's types do not have. */
type Options = Readonly<Record<string, unknown>>

interface Difference {
  readonly option: string
  readonly wanted: unknown
  readonly found: unknown
}

/** Options of a stream; absent ones must have the server's default. */
export type WantedStream = Partial<StreamConfig> & Pick<StreamConfig, "name">

/**
 * Whether an option may be changed in place: only if that neither loses data nor weakens a
 * guarantee. A smaller size discards messages, unless the stream rejects new ones when it is full.
 */
const isChangeable = ({ discard }: WantedStream, { option, wanted, found }: Difference) => {
  if (option === "description" || option === "compression") return true
  if (option === "max_bytes" && discard === "new") return true
  return (option === "max_bytes" || option === "num_replicas") && isMore(wanted, found)
}

/** -1 means unlimited. */
const isMore = (wanted: unknown, found: unknown) =>
  wanted === -1 || (found !== -1 && Number(wanted) > Number(found))

/** Defaults of nats-server 2.15 for options that are not set; others are absent or false. */
const defaults: Options = {
  retention: "limits",
  storage: "file",
  discard: "old",
  compression: "none",
  num_replicas: 1,
  max_age: 0,
  max_bytes: -1,
  max_msgs: -1,
  max_msgs_per_subject: -1,
  max_msg_size: -1,
  max_consumers: -1,
}

/** Default deduplication window in nanoseconds: two minutes, or the maximum age if shorter. */
const duplicateWindow = ({ max_age = 0 }: WantedStream) =>
  max_age > 0 ? Math.min(max_age, duplicate_window_ns) : duplicate_window_ns
const duplicate_window_ns = 120_000_000_000

/** JetStream's code for "stream not found". */
const not_found = 10_059

/** Maps "stream not found" to undefined; rethrows any other error. */
export const undefinedIfMissing = (cause: unknown) => {
  if (cause instanceof JetStreamApiError && cause.code === not_found) return undefined
  throw cause
}

/** Milliseconds that a cluster may take to form and create a stream, and between attempts. */
const patience_ms = 60_000
const pause_ms = 500
/** Milliseconds between checks for the leader of a new stream. */
const poll_ms = 50

/**
 * Returns the stream's info once it exists with exactly these options. `description`, `compression`
 * (of new messages), a larger `max_bytes` and more `num_replicas` are updated in place, and so are
 * the options in `changeable`, regardless of their effect on stored messages. Any other difference
 * fails with StreamMismatch. Fails with StreamFailed if the server does not respond or refuses.
 */
export const ensureStream = Effect.fnUntraced(function* (
  jsm: JetStreamManager,
  wanted: WantedStream,
  changeable: ReadonlyArray<string> = [],
) {
  const found = yield* findStream(jsm, wanted.name)
  const added = withRetries(wanted.name, () => jsm.streams.add(wanted))
  const info = found ?? (yield* Effect.tap(added, waitForLeader(jsm)))
  const differences = differencesOf(wanted, info.config)
  if (differences.length === 0) return info
  const isUpdatable = (difference: Difference) =>
    changeable.includes(difference.option) || isChangeable(wanted, difference)
  if (!differences.every(isUpdatable)) {
    return yield* mismatch(wanted.name, differences)
  }
  const changes = Object.fromEntries(differences.map(({ option, wanted }) => [option, wanted]))
  const updated = yield* withRetries(wanted.name, () => jsm.streams.update(wanted.name, changes))
  yield* waitForLeader(jsm)(updated)
  const left = differencesOf(wanted, updated.config)
  return left.length === 0 ? updated : yield* mismatch(wanted.name, left)
})

/** The stream's info; undefined if it does not exist. Fails with StreamFailed. */
export const findStream = (jsm: JetStreamManager, name: string) =>
  withRetries(name, () => jsm.streams.info(name).catch(undefinedIfMissing))

/**
 * Waits until a replicated stream has a leader: before that, messages may be dropped silently.
 * Continues after a timeout, because the stream exists.
 */
const waitForLeader =
  (jsm: JetStreamManager) =>
  ({ config }: StreamInfo) =>
    config.num_replicas === 1
      ? Effect.void
      : findStream(jsm, config.name).pipe(
          Effect.repeat({
            until: (info) => info?.cluster?.leader !== undefined,
            schedule: Schedule.spaced(poll_ms).pipe(Schedule.upTo({ duration: patience_ms })),
          }),
          Effect.asVoid,
        )

/** Retries a request for as long as a cluster may take to form. */
const withRetries = <A>(stream: string, ask: () => Promise<A>) =>
  Effect.tryPromise({ try: ask, catch: (cause) => cause }).pipe(
    Effect.retry({
      schedule: Schedule.spaced(pause_ms).pipe(Schedule.upTo({ duration: patience_ms })),
      while: isTransient,
    }),
    Effect.mapError((cause) => failed(stream, cause)),
  )

/** Every option that differs, including options that only the existing stream has. */
export const differencesOf = (
  wanted: WantedStream,
  found: Partial<StreamConfig>,
): ReadonlyArray<Difference> => {
  const kept = { ...defaults, duplicate_window: duplicateWindow(wanted) }
  const expected: Options = { ...kept, ...wanted }
  const actual: Options = { ...found, metadata: ownMetadata(found) }
  return [...new Set([...Object.keys(expected), ...Object.keys(actual)])]
    .filter((option) => !isEquivalent(expected[option], actual[option]))
    .map((option) => ({ option, wanted: expected[option], found: actual[option] }))
}

/** The metadata without the server's own entries, such as its version. */
const ownMetadata = ({ metadata = {} }: Partial<StreamConfig>) =>
  Object.fromEntries(Object.entries(metadata).filter(([key]) => !key.startsWith("_nats.")))

/** Absent, false, zero and empty options are equivalent. */
const isEquivalent = (wanted: unknown, found: unknown): boolean => {
  if (isObject(wanted) && isObject(found)) {
    const keys = [...new Set([...Object.keys(wanted), ...Object.keys(found)])]
    return keys.every((key) => isEquivalent(wanted[key], found[key]))
  }
  return isEmpty(wanted) ? isEmpty(found) : wanted === found
}

const isObject = (value: unknown): value is Options => typeof value === "object" && value !== null

const isEmpty = (value: unknown) => (isObject(value) ? Object.keys(value).length === 0 : !value)

const mismatch = (stream: string, differences: StreamMismatch["differences"]) => {
  const details = differences.map(
    ({ option, wanted, found }) => `${option} is ${display(found)} instead of ${display(wanted)}`,
  )
  const message = `The stream ${stream} has other settings: ${details.join("; ")}`
  return new StreamMismatch({ message, stream, differences })
}

const display = (value: unknown) => (value === undefined ? "absent" : JSON.stringify(value))

const failed = (stream: string, cause: unknown) => {
  const why = causeText(cause)
  return new StreamFailed({ message: `The stream ${stream} cannot be created: ${why}`, stream })
}
