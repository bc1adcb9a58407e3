/**
 * The spool's process: moves the facts of a spool to the log, in order.
 *
 * It stores nothing. The cursor is in the log, and the aggregate rejects facts that do not follow
 * it; the spool deletes a fact only after the log has recorded it. So a kill neither loses nor
 * duplicates facts.
 *
 * Source: decisions, facts of searches and predictions.
 */
import { Clock, DateTime, Effect, Schedule } from "effect"
import { address, Commands } from "#actors/commands.ts"
import type { Decider } from "#actors/decider.ts"
import { cursorIn, type FactContext } from "#actors/fact-log.ts"
import { firstBatch } from "#actors/first-batch.ts"
import { stateAfter } from "#actors/host.ts"
import { type Spool, type Spooled, SpoolFailed } from "#actors/spool.ts"
import { Log } from "#events/log.ts"
import type { Message } from "#schemas/message.ts"
import { facts_max } from "#schemas/spooled.ts"

/** Pause before the next scan when the spool had no new facts, in milliseconds. */
const idle_ms = 250

/** Pause after the log or the spool was unavailable, in milliseconds. */
const retry_ms = 500

/** A kind of facts, and the aggregate that records them. */
export interface FactKind<Fact, Command, Event extends Message, State, Rejection> {
  readonly to: Decider<Command, Event, State, Rejection>
  readonly record: (facts: {
    readonly epoch: string
    readonly from: number
    readonly facts: ReadonlyArray<Spooled<Fact>>
  }) => Command
}

interface Detailed {
  readonly detail: string
}

export interface SpoolerOptions<Fact, Command, Event extends Message, State, Rejection> {
  readonly spool: Spool<Fact>
  readonly kind: FactKind<Fact, Command, Event, State, Rejection>
  /** Names the stream: `<service>.<aggregate>.<node id>`. */
  readonly node_id: string
}

/** The two steps of a spooler: find the start, and record one commit. */
const steps = <
  Fact,
  Command,
  Event extends Message,
  State extends { readonly context: FactContext },
  Rejection extends Detailed,
>({
  spool,
  kind: { to, record },
  node_id,
}: SpoolerOptions<Fact, Command, Event, State, Rejection>) => {
  const { epoch } = spool
  const name = `The spool of ${to.name}.${node_id}`
  let is_reported = false

  /** On a full disk the facts stay in the spool, although the log has recorded them. */
  const acknowledge = (cursor: number) =>
    spool.acknowledge(cursor).pipe(
      Effect.andThen(
        Effect.sync(() => {
          is_reported = false
        }),
      ),
      Effect.catchTag("SpoolFailed", ({ detail }) => {
        if (is_reported) return Effect.void
        is_reported = true
        return Effect.logWarning(`${name} could not remove recorded facts and retries: ${detail}`)
      }),
    )

  /** The last fact of this spool in the log. */
  const begin = Effect.gen(function* () {
    const log = yield* Log
    const last = yield* log.load(`${to.name}.${node_id}`)
    if (last === undefined) return 0
    const cursor = cursorIn((yield* stateAfter(log, to, last)).context, epoch)
    // A killed process may have recorded facts without acknowledging them.
    yield* acknowledge(cursor)
    return cursor
  })

  /** Records one commit of facts after `from`; returns the cursor of the last one. */
  const recordNext = Effect.fnUntraced(function* (from: number) {
    const commands = yield* Commands
    const facts = firstBatch(yield* spool.scan(from, facts_max), facts_max)
    const last = facts.at(-1)?.cursor
    if (last === undefined) return from

    const at = DateTime.formatIso(DateTime.makeUnsafe(yield* Clock.currentTimeMillis))
    const command_id = `facts-${epoch}-${from}-${last}`
    const origin = { command_id, actor: `process:spool-${node_id}`, at }
    yield* commands.send(origin, address(to, node_id, record({ epoch, from, facts })))
    yield* acknowledge(last)
    return last
  })

  return { name, begin, recordNext }
}

/**
 * Records facts until it is interrupted. It retries while the log or the spool is unavailable, and
 * also on an unreadable fact, which waits for a release that can read it.
 */
export const spooler = <
  Fact,
  Command,
  Event extends Message,
  State extends { readonly context: FactContext },
  Rejection extends Detailed,
>(
  options: SpoolerOptions<Fact, Command, Event, State, Rejection>,
) =>
  Effect.suspend(() => {
    const { name, begin, recordNext } = steps(options)
    let reported = ""
    const report = ({ detail }: Detailed) => {
      if (detail === reported) return Effect.void
      reported = detail
      return Effect.logWarning(`${name} is waiting: ${detail}`)
    }
    const running = Effect.gen(function* () {
      let cursor = yield* begin
      while (true) {
        const last = yield* recordNext(cursor)
        reported = ""
        if (last === cursor) yield* Effect.sleep(idle_ms)
        cursor = last
      }
    })
    return running.pipe(
      Effect.catchDefect((defect) => Effect.fail(new SpoolFailed({ detail: String(defect) }))),
      Effect.tapError(report),
      Effect.retry(Schedule.spaced(retry_ms)),
    )
  })
