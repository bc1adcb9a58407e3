/**
 * The host of aggregates: load, decide, append.
 *
 * Source: DESIGN of the running system, 1 to 3.
 */
import { Effect, Layer, Result, Schedule, Schema, Semaphore, Stream } from "effect"
import { type Addressed, Commands, streamOf, Unavailable } from "#actors/commands.ts"
import type { AnyDecider, Decider } from "#actors/decider.ts"
import {
  type Append,
  type Commit,
  commands_remembered_max,
  Log,
  type LogUnavailable,
  type Origin,
  OutcomeUnknown,
  type Recorded,
  VersionConflict,
} from "#events/log.ts"
import type { Message } from "#schemas/message.ts"

/** Tries against other writers, before the caller hears of it (DESIGN 3). */
const attempts_max = 10

/** First pause between two tries, in milliseconds; it doubles, and jitter spreads it. */
const pause_ms = 4

/** Aggregates kept in memory: at most 64 MiB of snapshots (snapshot_bytes_max). */
const held_max = 4096

/** An aggregate as it was after a commit. */
interface Held {
  readonly state: unknown
  readonly version: number
  readonly hash: string
  readonly commands: ReadonlyArray<string>
}

interface Decided {
  readonly to: AnyDecider
  readonly stream: string
  readonly held: Held
  readonly events: ReadonlyArray<Message>
}

/**
 * Serves `Commands` in this process.
 *
 * What it holds in memory is only a guess: an append proves it by the version check, and what no
 * append proves (a rejection, a command that changes nothing) is decided again from the log.
 */
export const host = Layer.effect(
  Commands,
  Effect.gen(function* () {
    const log = yield* Log
    const held = new Map<string, Held>()
    const turns = new Map<string, { readonly turn: Semaphore.Semaphore; waiting: number }>()

    const keep = (stream: string, next: Held) => {
      held.delete(stream)
      held.set(stream, next)
      if (held.size > held_max) for (const oldest of held.keys()) return held.delete(oldest)
    }

    const load = Effect.fnUntraced(function* (to: AnyDecider, stream: string) {
      const last = yield* log.load(stream)
      if (last === undefined) {
        return { state: to.initialState, version: 0, hash: log.genesis(stream), commands: [] }
      }
      const { commit, position, hash } = last
      return {
        state: yield* stateAfter(log, to, last),
        version: position,
        hash,
        commands: commit.commands,
      }
    })

    /** Decides all commands from what is held, or afresh from the log. */
    const decide = Effect.fnUntraced(function* <Rejection>(
      origin: Origin,
      commands: ReadonlyArray<Addressed<Rejection>>,
      fresh: boolean,
    ) {
      const decided: Array<Decided> = []
      let rejected: Result.Result<never, Rejection> | undefined
      for (const addressed of commands) {
        const stream = streamOf(addressed)
        const { to, command } = addressed
        const now = (fresh ? undefined : held.get(stream)) ?? (yield* load(to, stream))
        keep(stream, now)
        if (now.commands.includes(origin.command_id)) return Result.succeed([])
        const result = to.decide(now.state, command)
        if (Result.isSuccess(result)) {
          decided.push({ to, stream, held: now, events: result.success })
        } else rejected ??= Result.fail(result.failure)
      }
      return rejected ?? Result.succeed(decided)
    })

    const append = Effect.fnUntraced(function* (origin: Origin, decided: ReadonlyArray<Decided>) {
      const changes = decided.filter(({ events }) => events.length > 0)
      const nexts = changes.map((change) => evolve(origin, change))
      const appended = yield* log.append(nexts.map(({ append }) => append))
      for (const [i, { position, hash }] of appended.entries()) {
        const next = nexts[i]
        if (next === undefined) continue
        const { stream, commit } = next.append
        keep(stream, { state: next.state, version: position, hash, commands: commit.commands })
      }
      return Math.max(...appended.map(({ position }) => position))
    })

    const attempt = Effect.fnUntraced(function* <Rejection>(
      origin: Origin,
      commands: ReadonlyArray<Addressed<Rejection>>,
    ) {
      const streams = commands.map(streamOf)
      const guessed = streams.some((stream) => held.has(stream))
      let decided = yield* decide(origin, commands, false)
      const proven = Result.isSuccess(decided) && decided.success.some((one) => one.events.length)
      if (!proven && guessed) decided = yield* decide(origin, commands, true)
      if (Result.isFailure(decided)) return Result.fail(decided.failure)
      if (decided.success.some(({ events }) => events.length > 0)) {
        return Result.succeed(yield* append(origin, decided.success))
      }
      return Result.succeed(Math.max(...streams.map((stream) => held.get(stream)?.version ?? 0)))
    })

    /** One command after another for each stream: our own commands never race each other. */
    const inTurn = <A, E>(streams: ReadonlyArray<string>, effect: Effect.Effect<A, E>) =>
      [...new Set(streams)].sort().reduceRight(
        (inner, stream) =>
          Effect.suspend(() => {
            const entry = turns.get(stream) ?? { turn: Semaphore.makeUnsafe(1), waiting: 0 }
            turns.set(stream, entry)
            entry.waiting++
            const leave = Effect.sync(() => {
              if (--entry.waiting === 0) turns.delete(stream)
            })
            return Effect.ensuring(entry.turn.withPermit(inner), leave)
          }),
        effect,
      )

    return Commands.of({
      send: Effect.fn("Commands.send")(function* (origin, ...commands) {
        const streams = commands.map(streamOf)
        const forget = Effect.sync(() => {
          for (const stream of streams) held.delete(stream)
        })
        const decided = yield* attempt(origin, commands).pipe(
          Effect.tapError(() => forget),
          Effect.retry({
            while: (error) => error instanceof VersionConflict || error instanceof OutcomeUnknown,
            schedule: Schedule.exponential(pause_ms).pipe(Schedule.jittered),
            times: attempts_max - 1,
          }),
          Effect.mapError(({ detail }) => new Unavailable({ detail })),
          (effect) => inTurn(streams, effect),
        )
        return yield* Effect.fromResult(decided)
      }),
    })
  }),
)

/** The aggregate's state after its last commit; from its history when the snapshot is too old. */
export const stateAfter = <State>(
  log: Log["Service"],
  to: Pick<
    Decider<unknown, Message, State, unknown>,
    "event" | "evolve" | "initialState" | "restore"
  >,
  { stream, commit }: Recorded,
): Effect.Effect<State, LogUnavailable> => {
  const state = to.restore(commit.snapshot)
  if (state !== undefined) return Effect.succeed(state)
  const decode = Schema.decodeUnknownSync(to.event)
  return Stream.runFold(
    log.read(stream),
    () => to.initialState,
    (before, { commit }) =>
      commit.events.reduce((state, event) => to.evolve(state, decode(event)), before),
  )
}

const evolve = (origin: Origin, { to, stream, held, events }: Decided) => {
  const state = events.reduce((state: unknown, event) => to.evolve(state, event), held.state)
  const { command_id, ...asked } = origin
  const commit: Commit = {
    v: 1,
    ...asked,
    events,
    snapshot: to.save(state),
    commands: [...held.commands.slice(1 - commands_remembered_max), command_id],
    prev: held.hash,
  }
  const append: Append = { stream, expected: held.version, commit }
  return { state, append }
}
