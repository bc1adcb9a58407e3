/**
 * The spool's process: takes the facts of a spool into the log, in order.
 *
 * It keeps nothing. The cursor is in the log, and the aggregate refuses facts that do not follow
 * it; the spool forgets a fact only after the log has it. So a kill loses none and doubles none.
 *
 * Source: decisions, facts of searches and predictions.
 */
import { Clock, DateTime, Effect, Schedule } from "effect"
import { address, Commands } from "#actors/commands.ts"
import type { Decider } from "#actors/decider.ts"
import { cursorIn, type FactContext } from "#actors/fact-log.ts"
import { fitting } from "#actors/fitting.ts"
import { stateAfter } from "#actors/host.ts"
import { type Spool, type Spooled, SpoolFailed } from "#actors/spool.ts"
import { Log } from "#events/log.ts"
import type { Message } from "#schemas/message.ts"
import { facts_max } from "#schemas/spooled.ts"

/** Pause before the spool is asked again when it had nothing new, in milliseconds. */
const idle_ms = 250

/** Pause after the log or the spool could not be reached, in milliseconds. */
const retry_ms = 500

/** A kind of facts, and the aggregate that they are recorded by. */
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

/** The two steps of a spooler: where it begins, and one commit. */
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
  const who = `The spool of ${to.name}.${node_id}`
  let is_told = false

  /** A disk that takes nothing forgets nothing; the log has it all the same. */
  const acknowledge = (cursor: number) =>
    spool.acknowledge(cursor).pipe(
      Effect.andThen(
        Effect.sync(() => {
          is_told = false
        }),
      ),
      Effect.catchTag("SpoolFailed", ({ detail }) => {
        if (is_told) return Effect.void
        is_told = true
        return Effect.logWarning(`${who} does not forget what is recorded: ${detail}`)
      }),
    )

  /** The last fact of this spool that the log has. */
  const begin = Effect.gen(function* () {
    const log = yield* Log
    const last = yield* log.load(`${to.name}.${node_id}`)
    if (last === undefined) return 0
    const cursor = cursorIn((yield* stateAfter(log, to, last)).context, epoch)
    // A process that was killed may have recorded what it could not acknowledge any more.
    yield* acknowledge(cursor)
    return cursor
  })

  /** Takes one commit's worth of the facts after `from` into the log; answers the last's cursor. */
  const recordNext = Effect.fnUntraced(function* (from: number) {
    const commands = yield* Commands
    const facts = fitting(yield* spool.scan(from, facts_max), facts_max)
    const last = facts.at(-1)?.cursor
    if (last === undefined) return from

    const at = DateTime.formatIso(DateTime.makeUnsafe(yield* Clock.currentTimeMillis))
    const command_id = `facts-${epoch}-${from}-${last}`
    const origin = { command_id, actor: `node:${node_id}`, at }
    yield* commands.send(origin, address(to, node_id, record({ epoch, from, facts })))
    yield* acknowledge(last)
    return last
  })

  return { who, begin, recordNext }
}

/**
 * Records until it is interrupted. A log or a spool out of reach only delays it; so does a fact
 * that cannot be read, which waits for a release that can.
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
    const { who, begin, recordNext } = steps(options)
    let told = ""
    const tell = ({ detail }: Detailed) => {
      if (detail === told) return Effect.void
      told = detail
      return Effect.logWarning(`${who} waits: ${detail}`)
    }
    const running = Effect.gen(function* () {
      let cursor = yield* begin
      while (true) {
        const last = yield* recordNext(cursor)
        told = ""
        if (last === cursor) yield* Effect.sleep(idle_ms)
        cursor = last
      }
    })
    return running.pipe(
      Effect.catchDefect((defect) => Effect.fail(new SpoolFailed({ detail: String(defect) }))),
      Effect.tapError(tell),
      Effect.retry(Schedule.spaced(retry_ms)),
    )
  })
