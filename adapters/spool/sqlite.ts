/**
 * A spool in a file of the data folder. Facts are buffered for a few milliseconds and written in
 * batches, so that no request waits for the disk.
 *
 * Source: decisions, facts of searches and predictions; docs/decisions/0090.
 */
import { basename } from "node:path"
import { Clock, Effect, Latch, Metric, Result, Schema } from "effect"
import { type Spool, type Spooled, SpoolFailed } from "#actors/spool.ts"
import { type Ask, spoolThread } from "#adapters/spool/call.ts"
import type { Held } from "#adapters/spool/file.ts"
import { dropCounter, spoolMemory, waiting_max } from "#adapters/spool/memory.ts"
import { gauge } from "#schemas/metric.ts"

/** Buffering time before a write in milliseconds. */
const gather_ms = 20

/** Maximum facts of one transaction. */
const batch_max = 500

/** Maximum facts in the file while the log is unreachable: several hundred megabytes. */
const kept_max = 1_000_000

/** Maximum characters of one fact as JSON: a fraction of a commit's limit. */
const fact_chars_max = 64 * 1024

/** Pause after a failed write in milliseconds. */
const retry_ms = 1_000

const facts_gauge = gauge(
  "almanac_spool_facts",
  "Facts that wait for the log, in memory and in the spool's file.",
)

interface Waiting<Fact> extends Spooled<Fact> {
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
  const ask = spoolThread({ path, now_ms: yield* Clock.currentTimeMillis })
  const held = yield* Effect.result(ask({ call: "open" }))
  if (Result.isSuccess(held)) return yield* spoolOver(path, fact, held.success, ask)
  yield* Effect.logError(
    `The spool cannot be opened: ${held.failure.detail}. ` +
      "Facts are kept in memory, and are lost where this process stops before the log has them.",
  )
  yield* Effect.ignore(ask({ call: "close" }))
  return yield* spoolMemory<Fact>(path)
})

/** One queue over the buffer in memory and the file. */
const queueOver = <Fact>(held: Held, ask: Ask, decode: (text: string) => Fact) => {
  let waiting: Array<Waiting<Fact>> = []
  let kept = held.kept
  let is_writing = false
  let next = held.first

  const asked = (question: Parameters<Ask>[0]) =>
    Effect.map(ask(question), (now) => {
      kept = now.kept
      return now
    })
  const forgetWaiting = (cursor: number) => {
    waiting = waiting.filter((one) => one.cursor > cursor)
  }

  return {
    waits: () => waiting.length,
    depth: () => kept + waiting.length,
    isFull: () => waiting.length >= waiting_max || kept + waiting.length >= kept_max,
    push: (fact: Fact, text: string) => void waiting.push({ cursor: next++, fact, text }),
    /** Writes one batch of the buffer. */
    write: Effect.suspend(() => {
      const rows = waiting.slice(0, batch_max).map(({ cursor, text }) => ({ cursor, fact: text }))
      const last = rows.at(-1)?.cursor ?? 0
      is_writing = true
      return asked({ call: "keep", rows }).pipe(
        Effect.map(() => forgetWaiting(last)),
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
        const unwritten = waiting.filter(({ cursor }) => cursor > after).slice(0, max)
        if (kept === 0) return Effect.succeed(unwritten)
        return Effect.flatMap(asked({ call: "scan", after, max }), ({ rows }) =>
          Effect.try({
            try: () => {
              const last = rows.at(-1)?.cursor ?? after
              const written = rows.map(({ cursor, fact }) => ({ cursor, fact: decode(fact) }))
              return [...written, ...unwritten.filter(({ cursor }) => cursor > last)].slice(0, max)
            },
            catch: (cause) => new SpoolFailed({ detail: `A fact cannot be read: ${cause}` }),
          }),
        )
      }),
    forget: (cursor: number) =>
      Effect.suspend(() => {
        forgetWaiting(cursor)
        // A write in progress may contain them, so they are deleted after it.
        const has_none = kept === 0 && !is_writing
        return has_none ? Effect.void : Effect.asVoid(asked({ call: "forget", cursor }))
      }),
  }
}

/** A spool over an open file, `held`, accessed through `ask` and closed with the scope. */
export const spoolOver = Effect.fnUntraced(function* <Fact>(
  path: string,
  schema: Schema.ConstraintCodec<Fact, unknown>,
  held: Held,
  ask: Ask,
) {
  const encode = Schema.encodeUnknownResult(schema)
  const decode = Schema.decodeUnknownSync(schema)
  const queue = queueOver(held, ask, (text) => decode(JSON.parse(text)))
  const news = yield* Latch.make(false)
  const dropping = dropCounter(path)
  const depth = Metric.withAttributes(facts_gauge, { spool: basename(path, ".sqlite") })
  const tellDepth = Effect.suspend(() => Metric.update(depth, queue.depth()))
  yield* tellDepth

  const write = Effect.gen(function* () {
    while (queue.waits() > 0) yield* Effect.ensuring(queue.write, tellDepth)
  })
  yield* Effect.addFinalizer(() =>
    Effect.catchTag(write, "SpoolFailed", ({ detail }) =>
      Effect.logError(`${queue.waits()} facts could not be kept: ${detail}`),
    ).pipe(Effect.andThen(Effect.ignore(ask({ call: "close" })))),
  )
  yield* Effect.forkScoped(writer(write, news))

  const spool: Spool<Fact> = {
    epoch: held.epoch,
    add: (fact) =>
      Effect.suspend(() => {
        const encoded = encode(fact)
        if (Result.isFailure(encoded)) {
          return Effect.logError(`A fact is none and is dropped: ${encoded.failure.message}`)
        }
        const text = JSON.stringify(encoded.success)
        if (text.length > fact_chars_max) {
          return Effect.logError(`A fact of ${text.length} characters is dropped: it is too long.`)
        }
        if (queue.isFull()) return dropping.drop
        queue.push(fact, text)
        return Effect.andThen(news.open, dropping.end)
      }),
    scan: queue.scan,
    acknowledge: (cursor) => Effect.ensuring(queue.forget(cursor), tellDepth),
  }
  return spool
})

/** Writes whenever facts arrive; logs the first of consecutive failures and the recovery. */
const writer = (write: Effect.Effect<void, SpoolFailed>, news: Latch.Latch) => {
  let is_told = false
  const tell = ({ detail }: SpoolFailed) => {
    if (is_told) return Effect.void
    is_told = true
    return Effect.logError(`The spool takes no facts, which wait in memory: ${detail}`)
  }
  const once = Effect.gen(function* () {
    yield* news.await
    yield* Effect.sleep(gather_ms)
    yield* news.close
    yield* write
    if (!is_told) return
    is_told = false
    yield* Effect.logWarning("The spool takes facts again.")
  })
  const retry = (failure: SpoolFailed) =>
    tell(failure).pipe(Effect.andThen(Effect.sleep(retry_ms)), Effect.andThen(news.open))
  return Effect.forever(Effect.catchTag(once, "SpoolFailed", retry))
}
