/**
 * A spool in a file of the data folder. Facts are buffered for a few milliseconds and written in
 * batches, so that no request waits for the disk.
 *
 * Source: decisions, facts of searches and predictions; docs/decisions/0090.
 */
import { basename } from "node:path"
import { Clock, Effect, Latch, Metric, Result, Schema } from "effect"
import { type Spool, type Spooled, SpoolFailed } from "#actors/spool.ts"
import { type SpoolCall, spoolThread } from "#adapters/spool/call.ts"
import type { SpoolState } from "#adapters/spool/file.ts"
import { dropCounter, facts_max, spoolMemory } from "#adapters/spool/memory.ts"
import { gauge } from "#schemas/metric.ts"

/** Buffering time before a write in milliseconds. */
const buffer_ms = 20

/** Maximum facts of one transaction. */
const batch_max = 500

/** Maximum facts in the file while the log is unreachable: several hundred megabytes. */
const stored_max = 1_000_000

/** Maximum characters of one fact as JSON: a fraction of a commit's limit. */
const fact_chars_max = 64 * 1024

/** Pause after a failed write in milliseconds. */
const retry_ms = 1_000

const facts_gauge = gauge(
  "almanac_spool_facts",
  "Facts waiting for the log, in memory and in the spool file.",
)

interface QueuedFact<Fact> extends Spooled<Fact> {
  /** The fact as JSON. */
  readonly text: string
}

/**
 * The spool at `path`, flushed when the scope closes. It never fails: if the file cannot be opened,
 * facts stay in memory and an error is logged.
 */
export const spoolSqlite = Effect.fnUntraced(function* <Fact>(
  path: string,
  fact: Schema.ConstraintCodec<Fact, unknown>,
) {
  const send = spoolThread({ path, now_ms: yield* Clock.currentTimeMillis })
  const opened = yield* Effect.result(send({ call: "open" }))
  if (Result.isSuccess(opened)) return yield* spoolOver(path, fact, opened.success, send)
  yield* Effect.logError(
    `The spool cannot be opened: ${opened.failure.detail}. ` +
      "Facts are kept in memory and are lost if this process stops before they are in the log.",
  )
  yield* Effect.ignore(send({ call: "close" }))
  return yield* spoolMemory<Fact>(path)
})

/** One queue over the buffer in memory and the file. */
const queueOver = <Fact>(opened: SpoolState, send: SpoolCall, decode: (text: string) => Fact) => {
  let queued: Array<QueuedFact<Fact>> = []
  let stored = opened.count
  let is_writing = false
  let next = opened.first

  const sendAndCount = (request: Parameters<SpoolCall>[0]) =>
    Effect.map(send(request), (state) => {
      stored = state.count
      return state
    })
  const dropQueued = (cursor: number) => {
    queued = queued.filter((one) => one.cursor > cursor)
  }

  return {
    queuedCount: () => queued.length,
    depth: () => stored + queued.length,
    isFull: () => queued.length >= facts_max || stored + queued.length >= stored_max,
    push: (fact: Fact, text: string) => void queued.push({ cursor: next++, fact, text }),
    /** Writes one batch of the buffer. */
    write: Effect.suspend(() => {
      const rows = queued.slice(0, batch_max).map(({ cursor, text }) => ({ cursor, fact: text }))
      const last = rows.at(-1)?.cursor ?? 0
      is_writing = true
      return sendAndCount({ call: "keep", rows }).pipe(
        Effect.map(() => dropQueued(last)),
        Effect.ensuring(
          Effect.sync(() => {
            is_writing = false
          }),
        ),
      )
    }),
    scan: (after: number, max: number) =>
      Effect.suspend(() => {
        // Read first: facts written meanwhile are found in the file.
        const unwritten = queued.filter(({ cursor }) => cursor > after).slice(0, max)
        if (stored === 0) return Effect.succeed(unwritten)
        return Effect.flatMap(sendAndCount({ call: "scan", after, max }), ({ rows }) =>
          Effect.try({
            try: () => {
              const last = rows.at(-1)?.cursor ?? after
              const written = rows.map(({ cursor, fact }) => ({ cursor, fact: decode(fact) }))
              return [...written, ...unwritten.filter(({ cursor }) => cursor > last)].slice(0, max)
            },
            catch: (cause) =>
              new SpoolFailed({ detail: `A fact in the spool cannot be read: ${cause}` }),
          }),
        )
      }),
    forget: (cursor: number) =>
      Effect.suspend(() => {
        dropQueued(cursor)
        // A write in progress may contain them, so they are deleted after it.
        const has_none = stored === 0 && !is_writing
        return has_none ? Effect.void : Effect.asVoid(sendAndCount({ call: "forget", cursor }))
      }),
  }
}

/** A spool over an open file, accessed through `send` and closed with the scope. */
export const spoolOver = Effect.fnUntraced(function* <Fact>(
  path: string,
  schema: Schema.ConstraintCodec<Fact, unknown>,
  opened: SpoolState,
  send: SpoolCall,
) {
  const encode = Schema.encodeUnknownResult(schema)
  const decode = Schema.decodeUnknownSync(schema)
  const queue = queueOver(opened, send, (text) => decode(JSON.parse(text)))
  const signal = yield* Latch.make(false)
  const dropping = dropCounter(path)
  const depth = Metric.withAttributes(facts_gauge, { spool: basename(path, ".sqlite") })
  const updateDepth = Effect.suspend(() => Metric.update(depth, queue.depth()))
  yield* updateDepth

  const write = Effect.gen(function* () {
    while (queue.queuedCount() > 0) yield* Effect.ensuring(queue.write, updateDepth)
  })
  yield* Effect.addFinalizer(() =>
    Effect.catchTag(write, "SpoolFailed", ({ detail }) =>
      Effect.logError(`${queue.queuedCount()} facts could not be written to the spool: ${detail}`),
    ).pipe(Effect.andThen(Effect.ignore(send({ call: "close" })))),
  )
  yield* Effect.forkScoped(runWriter(write, signal))

  const spool: Spool<Fact> = {
    epoch: opened.epoch,
    add: (fact) =>
      Effect.suspend(() => {
        const encoded = encode(fact)
        if (Result.isFailure(encoded)) {
          return Effect.logError(`An invalid fact was dropped: ${encoded.failure.message}`)
        }
        const text = JSON.stringify(encoded.success)
        if (text.length > fact_chars_max) {
          return Effect.logError(`A fact of ${text.length} characters was dropped: it is too long.`)
        }
        if (queue.isFull()) return dropping.drop
        queue.push(fact, text)
        return Effect.andThen(signal.open, dropping.end)
      }),
    scan: queue.scan,
    acknowledge: (cursor) => Effect.ensuring(queue.forget(cursor), updateDepth),
  }
  return spool
})

/** Writes whenever facts arrive; logs the first of consecutive failures and the recovery. */
const runWriter = (write: Effect.Effect<void, SpoolFailed>, signal: Latch.Latch) => {
  let has_logged = false
  const logFailure = ({ detail }: SpoolFailed) => {
    if (has_logged) return Effect.void
    has_logged = true
    return Effect.logError(`The spool file is not writable; facts wait in memory: ${detail}`)
  }
  const once = Effect.gen(function* () {
    yield* signal.await
    yield* Effect.sleep(buffer_ms)
    yield* signal.close
    yield* write
    if (!has_logged) return
    has_logged = false
    yield* Effect.logWarning("The spool file is writable again.")
  })
  const retry = (failure: SpoolFailed) =>
    logFailure(failure).pipe(Effect.andThen(Effect.sleep(retry_ms)), Effect.andThen(signal.open))
  return Effect.forever(Effect.catchTag(once, "SpoolFailed", retry))
}
