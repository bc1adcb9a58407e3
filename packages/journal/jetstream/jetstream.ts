/**
 * The log as one JetStream stream. A commit is a message, its position the stream's sequence, an
 * aggregate's version the last sequence of its subject.
 *
 * Source: DESIGN of the running system, 1.
 */
import {
  DiscardPolicy,
  type JetStreamManager,
  jetstreamManager,
  RetentionPolicy,
  StorageType,
  StoreCompression,
  type StoredMsg,
} from "@nats-io/jetstream"
import { type MsgHdrs, nanos } from "@nats-io/transport-node"
import { Effect, Layer, Option, Schedule, Stream } from "effect"
import {
  ensureStream,
  findStream,
  isTransient,
  type Link,
  NatsConnection,
  overLink,
  requester,
  type WantedStream,
  watchLink,
} from "#bus"
import {
  type Append,
  CommitJudge,
  type Entry,
  isReadable,
  type Judge,
  Log,
  LogUnavailable,
  type Part,
  type Tip,
  VersionConflict,
} from "#events/log.ts"
import { spanned } from "#events/trace.ts"
import {
  append_commits_max,
  applyJudge,
  checked,
  decode,
  digest,
  type Encoded,
  encode,
  sha256,
} from "../commits/codec.ts"
import { type LastBefore, lastReadable, readable, withReadableLasts } from "../commits/readable.ts"
import { type Generation, generationConfig, positionOf } from "../generations/generation.ts"
import { absentLog, guardedWrite } from "../guard/guarded-log.ts"
import { checkAbsent, checkStream, LogWatch, type Watched } from "../guard/watch.ts"
import { appender } from "./appender.ts"
import type { Delivered, Source } from "./consumer.ts"
import { readFailure } from "./failure.ts"
import { measuringAppend } from "./metrics.ts"
import { pace } from "./pace.ts"
import type { AppendResult } from "./queue.ts"
import { readMessages } from "./reader.ts"
import { append_timeout_ms, type Write, writer } from "./write.ts"

export interface LogOptions {
  /** The stream's name. It changes with each generation, so no other code may depend on it. */
  readonly stream: string
  /** First token of its subjects, `commit` if absent. */
  readonly head?: string
  /** Earlier generations, if any. */
  readonly earlier?: EarlierGenerations
  /** Copies in a cluster, 1 if absent. */
  readonly replicas?: number
  /** Maximum size on disk, unlimited if absent. */
  readonly max_bytes?: number
  /** Neither creates nor changes the stream. */
  readonly read_only?: boolean | undefined
}

/** The generations before this one. */
export interface EarlierGenerations {
  readonly generation: Generation
  /** Reads their entries of a part after a position, oldest first. */
  readonly read: (part: Part, after: number) => Stream.Stream<Entry, LogUnavailable>
}

/** Maximum number of streams whose next read goes to the leader, because replicas may lag. */
const uncertain_max = 10_000

/** Milliseconds between attempts to read while the server is offline, and their limit: 5 s. */
const pause_ms = 50
const retry_ms = 5_000

/** Timeout of one read in milliseconds: the server may hang or be gone. */
const read_ms = 1_500

/** Deduplication window in milliseconds. Unused: appends check versions and send no message id. */
const duplicate_window_ms = 1_000

const missingStream = (stream: string) =>
  new LogUnavailable({
    detail:
      `The stream ${stream} does not exist on this bus. Check nats.url, or start the server ` +
      `first.`,
  })

/** The log over the connection of the bus; fails if the stream's configuration differs. */
export const logJetStream = (options: LogOptions) =>
  Layer.effect(
    Log,
    Effect.gen(function* () {
      const { connection, jsm } = yield* NatsConnection
      const watch = Option.getOrUndefined(yield* Effect.serviceOption(LogWatch))
      if (watch !== undefined && (yield* findStream(jsm, options.stream)) === undefined) {
        yield* checkAbsent(watch)
        // Creating a stream of that name could overwrite the remains of the old one on disk.
        if (watch.problem() !== undefined) return absentLog(watch)
      }
      if (options.read_only !== true) yield* ensureStream(jsm, logStreamConfig(options))
      else if ((yield* findStream(jsm, options.stream)) === undefined) {
        return yield* missingStream(options.stream)
      }
      const query_jsm = yield* Effect.promise(() =>
        jetstreamManager(connection, { checkAPI: false, timeout: read_ms }),
      )
      const link = yield* watchLink(connection)
      const ask = yield* requester(connection, link, append_timeout_ms)
      const source = { connection, jsm, link, name: options.stream }
      const watched = watchedOf(query_jsm, options)
      const judge = yield* CommitJudge
      if (watch !== undefined) {
        yield* Effect.mapError(checkStream(watch, watched), readFailure)
      }
      const { head = "commit" } = options
      const write = writer(connection, ask, { stream: options.stream, head })
      const reading = reads(source, query_jsm, options, judge)
      return Log.of({
        hashOf: sha256,
        digest,
        ...reading.port,
        ...loadAndAppend(
          { ...source, jsm: query_jsm },
          watch === undefined ? write : yield* guardedWrite(write, { watch, watched, link }),
          { ...options, lastBefore: reading.lastBefore, judge },
        ),
      })
    }),
  )

const watchedOf = (jsm: JetStreamManager, options: LogOptions): Watched => {
  const { generation } = options.earlier ?? {}
  const { base = 0, copies = 0 } = generation ?? {}
  return {
    jsm,
    stream: options.stream,
    head: options.head ?? "commit",
    first: base - copies + 1,
    base,
  }
}

/** Configuration of the log's stream. `deny_delete` and `deny_purge` cannot be reverted. */
export const logStreamConfig = (options: LogOptions) => {
  const { stream, head = "commit", replicas = 1, max_bytes, earlier } = options
  return {
    name: stream,
    subjects: [`${head}.>`],
    storage: StorageType.File,
    retention: RetentionPolicy.Limits,
    discard: DiscardPolicy.New,
    deny_delete: true,
    deny_purge: true,
    allow_direct: true,
    allow_atomic: true,
    duplicate_window: nanos(duplicate_window_ms),
    // Compression would save a tenth of the space. But one flipped byte in a compressed block makes
    // nats-server 2.15 delete the whole stream when it starts after a crash; of a plain block it
    // loses the rest of that block (docs/decisions/0169).
    compression: StoreCompression.None,
    num_replicas: replicas,
    ...(max_bytes !== undefined && { max_bytes }),
    ...(earlier && generationConfig(earlier.generation)),
  } satisfies WantedStream
}

const loadAndAppend = (
  { jsm, link, name }: Source,
  write: Write,
  {
    head = "commit",
    earlier,
    replicas = 1,
    lastBefore,
    judge,
  }: LogOptions & { readonly lastBefore: LastBefore; readonly judge: Judge },
) => {
  const base = earlier?.generation.base ?? 0
  const append = appender({
    write,
    link,
    pace: pace(),
    now: () => performance.now(),
  })
  const uncertain = new Set<string>()

  /** After a failure only the leader is certain to have the last version. */
  const markUncertain = (appends: ReadonlyArray<Append>) => {
    if (uncertain.size > uncertain_max - append_commits_max) uncertain.clear()
    for (const { stream } of appends) uncertain.add(stream)
  }

  const submit = (appends: ReadonlyArray<Append>) =>
    Effect.suspend(() => {
      const encoded = encode(appends)
      const is_old = encoded.some(({ expected }) => expected > 0 && expected <= base)
      const sequenced = is_old ? Effect.forEach(encoded, withSequence) : Effect.succeed(encoded)
      return Effect.flatMap(sequenced, writtenBy(append))
    }).pipe(
      measuringAppend(appends.length),
      spanned("append", { attributes: () => ({ "almanac.commits": appends.length }) }),
      Effect.tapError(() => Effect.sync(() => markUncertain(appends))),
    )

  const lastOf = (stream: string) =>
    Effect.suspend(() => {
      const query = { last_by_subj: `${head}.${checked(stream)}` }
      // Any replica responds to a direct get, even one that lags: its response could cause a false
      // conflict.
      const is_certain = replicas === 1 && !uncertain.has(stream)
      const get = is_certain ? jsm.direct.getMessage.bind(jsm.direct) : leaderMessage
      return withRetries(link, () => get(name, query))
    }).pipe(Effect.tap(() => Effect.sync(() => uncertain.delete(stream))))

  /**
   * Maps a version of an earlier generation to the sequence of its copy, which the server checks.
   */
  const withSequence = (one: Encoded) => {
    const { stream, expected } = one
    if (expected === 0 || expected > base) return Effect.succeed(one)
    return Effect.flatMap(lastOf(stream), (last) => {
      if (last && positionOf(base, last.seq, last.header) === expected) {
        return Effect.succeed({ ...one, expected: last.seq })
      }
      return Effect.fail(new VersionConflict({ detail: `${stream} is no longer at ${expected}.` }))
    })
  }

  const tip = (stream: string) =>
    Effect.flatMap(lastOf(stream), (last) =>
      last ? tipOf(entryOf(base, stream, last, judge), lastBefore) : Effect.undefined,
    )
  const load = (stream: string) => Effect.map(tip(stream), (found) => found?.last)
  const leaderMessage = jsm.streams.getMessage.bind(jsm.streams)

  return { load, tip, append: submit }
}

/** Waits for the result of an append; withdraws it on interruption. */
const writtenBy = (append: ReturnType<typeof appender>) => (encoded: ReadonlyArray<Encoded>) =>
  Effect.callback<AppendResult>((resume) => {
    const withdraw = append(encoded, (answer) => resume(Effect.succeed(answer)))
    return Effect.sync(withdraw)
  }).pipe(
    Effect.flatMap(Effect.fromResult),
    Effect.map((positions) => encoded.map(({ bytes }, i) => locate(positions[i] ?? 0, bytes))),
  )

const entryOf = (
  base: number,
  stream: string,
  { seq, header, data }: StoredMsg,
  judge: Judge,
): Entry => decode(positionOf(base, seq, header), stream, data, judge)

/** The tip of the stream with this last entry. */
const tipOf = (entry: Entry, lastBefore: LastBefore): Effect.Effect<Tip, LogUnavailable> => {
  const { position, hash } = entry
  if (isReadable(entry)) return Effect.succeed({ position, hash, last: entry })
  return Effect.map(lastBefore(entry.stream, position), (last) => ({ position, hash, last }))
}

const locate = (position: number, bytes: Uint8Array) => ({ position, hash: sha256(bytes) })

const reads = (
  source: Source,
  query_jsm: JetStreamManager,
  { head: first = "commit", earlier }: LogOptions,
  judge: Judge,
) => {
  const { link, name } = source
  const base = earlier?.generation.base ?? 0
  const readAs = (sequence: number, subject: string, data: Uint8Array, of?: MsgHdrs) =>
    decode(positionOf(base, sequence, of), subject.slice(first.length + 1), data, judge)
  const entryOfMessage = ({ position, message: { subject, data, headers } }: Delivered) =>
    readAs(position, subject, data, headers)

  const last = (part: Part) =>
    withRetries(link, () =>
      query_jsm.streams.getMessage(name, { last_by_subj: filter(first, part) }),
    )
  const lastSequence = (part: Part) => Effect.map(last(part), (message) => message?.seq ?? 0)

  const read = (part: Part, after: number, end: { readonly lasts?: boolean } | undefined) =>
    readMessages(source, {
      filter: filter(first, part),
      after,
      ...(end && { ...end, until: lastSequence(part) }),
    }).pipe(Stream.map(entryOfMessage))

  /** Reads earlier generations first, then this stream without its copies. */
  const acrossGenerations = (
    part: Part,
    after: number,
    end: { readonly lasts?: boolean } | undefined,
  ) => {
    if (earlier === undefined || after >= base) return read(part, after, end)
    const before = earlier.read(part, after).pipe(Stream.map((entry) => applyJudge(entry, judge)))
    return Stream.concat(before, read(part, base, end))
  }
  const entries = (part: Part, position = 0) => acrossGenerations(part, position, {})
  const followEntries = (part: Part, position: number) =>
    acrossGenerations(part, position, undefined)
  const lastBefore = lastReadable(entries)

  const head = Effect.fnUntraced(function* (part: Part) {
    const found = yield* last(part)
    if (!found) return 0
    const entry = readAs(found.seq, found.subject, found.data, found.header)
    if (isReadable(entry)) return entry.position
    return (yield* lastBefore(part, entry.position))?.position ?? 0
  })
  const port = {
    head,
    end: Effect.map(last(""), (found) => (found ? positionOf(base, found.seq, found.header) : 0)),
    entries,
    followEntries,
    read: (part: Part, position = 0) => readable(entries(part, position)),
    follow: (part: Part, position: number) => readable(followEntries(part, position)),
    lasts: (part: Part) => withReadableLasts(read(part, 0, { lasts: true }), lastBefore),
  }
  return { port, lastBefore }
}

/** The subjects of a part; a part of three tokens is a single stream. */
const filter = (head: string, part: Part) => {
  if (part === "") return `${head}.>`
  return part.split(".").length === 3 ? `${head}.${checked(part)}` : `${head}.${part}.>`
}

/** Retries a read until a server responds, within a limit. */
const withRetries = <A>(link: Link, ask: () => Promise<A>): Effect.Effect<A, LogUnavailable> =>
  Effect.tryPromise({ try: () => overLink(link, ask), catch: (cause) => cause }).pipe(
    Effect.retry({
      schedule: Schedule.spaced(pause_ms).pipe(Schedule.upTo({ duration: retry_ms })),
      while: (cause) => isTransient(cause) && !link.isClosed(),
    }),
    Effect.mapError(readFailure),
  )
