/**
 * The host of aggregates: load, decide, append.
 *
 * What it holds in memory is only a guess: an append proves it by the version check, and what no
 * append proves (a rejection, a command that changes nothing) is decided again from the log.
 *
 * Source: DESIGN of the running system, 1 to 3.
 */
import { Effect, Layer, Predicate, Random, Result, Schema, Stream, Struct } from "effect"
import { countFailedTry, measuring } from "#actors/command-metrics.ts"
import { type Addressed, Commands, streamOf, Unavailable } from "#actors/commands.ts"
import type { AnyDecider, Decider } from "#actors/decider.ts"
import { makeTurns } from "#actors/turns.ts"
import {
  type Append,
  type Commit,
  commands_remembered_max,
  Log,
  LogUnavailable,
  type Origin,
  type OutcomeUnknown,
  type Recorded,
  type VersionConflict,
} from "#events/log.ts"
import { spanned, type Trace, traceNow } from "#events/trace.ts"
import type { Message } from "#schemas/message.ts"

/** Tries against other writers, before the caller hears of it (DESIGN 3). */
const attempts_max = 10

/** Mean pause before the second try, in milliseconds; it doubles with each. */
const pause_ms = 4

/** Aggregates kept in memory: at most 64 MiB of snapshots (snapshot_bytes_max). */
const held_max = 4096

/** Aggregates of one batch that are read from the log at once, of 1 MB each at most. */
const loads_max = 20

/** An aggregate as it was after a commit. */
interface Held {
  readonly state: unknown
  readonly version: number
  readonly hash: string
  readonly commands: ReadonlyArray<string>
  readonly fingerprints: ReadonlyArray<string> | undefined
}

/** A command with the aggregate that it goes to. */
interface Target<Rejection> {
  readonly to: AnyDecider<Rejection>
  readonly command: unknown
  readonly stream: string
  readonly held: Held
}

interface Decided {
  readonly to: AnyDecider
  readonly stream: string
  readonly held: Held
  readonly events: ReadonlyArray<Message>
}

interface Memory {
  readonly log: Log["Service"]
  readonly held: Map<string, Held>
}

type Asked<Rejection> = ReadonlyArray<Addressed<Rejection>>
type Conflict = VersionConflict | OutcomeUnknown | LogUnavailable

/** Serves `Commands` in this process. */
export const host = Layer.effect(
  Commands,
  Effect.gen(function* () {
    const memory: Memory = { log: yield* Log, held: new Map() }
    const inTurn = makeTurns()

    return Commands.of({
      // One after another for each aggregate: our own commands never race each other.
      send: (origin, ...commands) =>
        inTurn(commands.map(streamOf), persist(memory, origin, commands, 1)).pipe(
          measuring(commands),
          Effect.flatMap(Effect.fromResult),
          spanned("command", { attributes: () => attributesOf(commands) }),
        ),
    })
  }),
)

/** The first of several stands for all. */
const attributesOf = (commands: Asked<unknown>) => {
  const [first] = commands
  if (first === undefined) return {}
  const { command } = first
  const type = Predicate.hasProperty(command, "type") ? String(command.type) : "unknown"
  return {
    "almanac.command": type,
    "almanac.stream": streamOf(first),
    "almanac.commands": commands.length,
  }
}

/** A commit tells its own span, whatever the sender's was; where nobody collects, none. */
const withTrace = (origin: Origin, trace: Trace | undefined): Origin => {
  if (trace !== undefined) return { ...origin, trace }
  return origin.trace === undefined ? origin : Struct.omit(origin, ["trace"])
}

/** Tries until it is done, refused, or others were always faster. */
const persist = <Rejection>(
  memory: Memory,
  origin: Origin,
  commands: Asked<Rejection>,
  attempt: number,
): Effect.Effect<Result.Result<number, Rejection>, Unavailable> =>
  Effect.catch(tryOnce(memory, origin, commands), (failure: Conflict | Unavailable) => {
    if (failure instanceof Unavailable) return Effect.fail(failure)
    for (const command of commands) memory.held.delete(streamOf(command))
    countFailedTry(commands, failure._tag)
    if (failure._tag === "LogUnavailable" || attempt === attempts_max) {
      return Effect.fail(new Unavailable({ detail: failure.detail }))
    }
    const spread_ms = 2 * pause_ms * 2 ** (attempt - 1)
    return Random.nextBetween(0, spread_ms).pipe(
      Effect.flatMap(Effect.sleep),
      Effect.andThen(persist(memory, origin, commands, attempt + 1)),
    )
  })

const tryOnce = Effect.fnUntraced(function* <Rejection>(
  memory: Memory,
  origin: Origin,
  commands: Asked<Rejection>,
) {
  const guessed = commands.some((command) => memory.held.has(streamOf(command)))
  let targets = yield* find(memory, commands, false)
  let decided = decide(origin, targets)
  if (!isProvable(decided) && guessed) {
    targets = yield* find(memory, commands, true)
    decided = decide(origin, targets)
  }
  if (isReused(origin, targets)) return yield* reused
  if (Result.isFailure(decided)) return Result.fail(decided.failure)
  const changes = decided.success.filter(({ events }) => events.length > 0)
  if (changes.length > 0) {
    const traced = withTrace(origin, yield* traceNow)
    return Result.succeed(yield* append(memory, traced, changes))
  }
  return Result.succeed(Math.max(...targets.map(({ held }) => held.version)))
})

/**
 * Whether an append will tell if the decision rested on the newest state: of an aggregate to which
 * nothing happens beside others it tells nothing.
 */
const isProvable = (decided: Result.Result<ReadonlyArray<Decided>, unknown>) =>
  Result.isSuccess(decided) &&
  decided.success.length > 0 &&
  decided.success.every(({ events }) => events.length > 0)

/** The aggregates of the commands as they are held, or as the log has them. */
const find = <Rejection>(memory: Memory, commands: Asked<Rejection>, fresh: boolean) =>
  Effect.forEach(
    commands,
    (addressed) => {
      const { to, command } = addressed
      const stream = streamOf(addressed)
      const known = fresh ? undefined : memory.held.get(stream)
      const found = known ? Effect.succeed(known) : load(memory.log, to, stream)
      return Effect.map(found, (held): Target<Rejection> => {
        keep(memory, stream, held)
        return { to, command, stream, held }
      })
    },
    { concurrency: commands.length === 1 ? 1 : loads_max },
  )

const reused = new Unavailable({
  detail: "Something else was done under this id before.",
  is_reused: true,
})

/** Whether the command's id was another's; what was done without a fingerprint may have been it. */
const isReused = (
  { command_id, fingerprint }: Origin,
  targets: ReadonlyArray<Target<unknown>>,
): boolean =>
  fingerprint !== undefined &&
  targets.some(({ held: { commands, fingerprints } }) => {
    const known = fingerprints?.[commands.indexOf(command_id)] ?? ""
    return known !== "" && known !== fingerprint
  })

/** Decides all commands; nothing where it was done. */
const decide = <Rejection>(
  { command_id }: Origin,
  targets: ReadonlyArray<Target<Rejection>>,
): Result.Result<ReadonlyArray<Decided>, Rejection> => {
  const decided: Array<Decided> = []
  let rejected: Result.Result<never, Rejection> | undefined
  for (const { to, command, stream, held } of targets) {
    if (held.commands.includes(command_id)) return Result.succeed([])
    const result = to.decide(held.state, command)
    if (Result.isFailure(result)) rejected ??= Result.fail(result.failure)
    else decided.push({ to, stream, held, events: result.success })
  }
  return rejected ?? Result.succeed(decided)
}

const load = Effect.fnUntraced(function* (
  log: Log["Service"],
  to: AnyDecider,
  stream: string,
): Effect.fn.Return<Held, LogUnavailable> {
  const tip = yield* log.tip(stream)
  // What cannot be read has no part in the state; the next commit follows it all the same.
  const {
    position: version,
    hash,
    last,
  } = tip ?? {
    position: 0,
    hash: log.hashOf(stream),
    last: undefined,
  }
  if (last === undefined) {
    return { state: to.initialState, version, hash, commands: [], fingerprints: undefined }
  }
  const state = yield* stateAfter(log, to, last)
  return { state, version, hash, ...rememberedOf(last.commit) }
})

/**
 * The aggregate's state after its last commit; from its history when the snapshot is of another
 * machine. What a newer release has done to it this one may not understand: then it fails as if the
 * log did not answer, until a process of that release is asked (decision 0148).
 */
export const stateAfter = <State>(
  log: Log["Service"],
  to: Pick<
    Decider<unknown, Message, State, unknown>,
    "event" | "evolve" | "initialState" | "restore" | "save"
  >,
  { stream, commit }: Recorded,
): Effect.Effect<State, LogUnavailable> => {
  const state = to.restore(commit.snapshot)
  if (state !== undefined) return Effect.succeed(state)
  const decode = Schema.decodeUnknownSync(to.event)
  const folded = Stream.runFold(
    log.read(stream),
    () => to.initialState,
    (before, { commit }) =>
      commit.events.reduce((state, event) => to.evolve(state, decode(event)), before),
  )
  if (commit.snapshot.machine <= to.save(to.initialState).machine) return folded
  const detail = `A newer release has changed ${stream}, and this one cannot read it.`
  return Effect.catchDefect(folded, () => Effect.fail(new LogUnavailable({ detail })))
}

/** Writes what was decided and answers the last position. */
const append = (memory: Memory, origin: Origin, changes: ReadonlyArray<Decided>) => {
  const nexts = changes.map((change) => next(origin, change))
  return Effect.map(memory.log.append(nexts.map(({ append }) => append)), (appended) => {
    let last = 0
    for (const [i, { position, hash }] of appended.entries()) {
      last = Math.max(last, position)
      const written = nexts[i]
      if (written === undefined) continue
      const { stream, commit } = written.append
      keep(memory, stream, {
        state: written.state,
        version: position,
        hash,
        ...rememberedOf(commit),
      })
    }
    return last
  })
}

/** Of the fingerprints those that are of this commit's commands. */
const rememberedOf = ({ commands, fingerprints }: Commit) => ({
  commands,
  fingerprints: fingerprints?.length === commands.length ? fingerprints : undefined,
})

/** The fingerprints after this command's; undefined where nobody has one. */
const printsAfter = ({ commands, fingerprints }: Held, fingerprint: string | undefined) => {
  if (fingerprint === undefined && fingerprints === undefined) return undefined
  const before = fingerprints ?? commands.map(() => "")
  const prints = [...before.slice(1 - commands_remembered_max), fingerprint ?? ""]
  return prints.some((print) => print !== "") ? prints : undefined
}

/** What is used last is forgotten last. */
const keep = ({ held }: Memory, stream: string, now: Held) => {
  held.delete(stream)
  held.set(stream, now)
  const [oldest] = held.size > held_max ? held.keys() : []
  if (oldest !== undefined) held.delete(oldest)
}

/** The state after the events, and the commit that says so. */
const next = (origin: Origin, { to, stream, held, events }: Decided) => {
  const state = to.after(held.state, events)
  const { command_id, fingerprint, ...asked } = origin
  const fingerprints = printsAfter(held, fingerprint)
  const commit: Commit = {
    v: 1,
    ...asked,
    events,
    snapshot: to.save(state),
    commands: [...held.commands.slice(1 - commands_remembered_max), command_id],
    ...(fingerprints === undefined ? {} : { fingerprints }),
    prev: held.hash,
  }
  const append: Append = { stream, expected: held.version, commit }
  return { state, append }
}
