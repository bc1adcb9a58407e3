/**
 * The host of aggregates: load, decide, append.
 *
 * Its memory is only a cache: the version check of an append validates it. A decision without an
 * append (a rejection, or a command that changes nothing) is repeated with state from the log.
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

/** Maximum number of attempts on version conflicts before the command fails (DESIGN 3). */
const attempts_max = 10

/** Mean pause before the second attempt, in milliseconds; it doubles with each attempt. */
const pause_ms = 4

/** Maximum number of cached aggregates: 64 MiB of snapshots at most (snapshot_bytes_max). */
const cached_max = 4096

/** Maximum number of concurrent loads for one batch, of up to 1 MB each. */
const loads_max = 20

/** An aggregate's state after a commit. */
interface CachedAggregate {
  readonly state: unknown
  readonly version: number
  readonly hash: string
  readonly commands: ReadonlyArray<string>
  readonly fingerprints: ReadonlyArray<string> | undefined
}

/** A command with its aggregate's current state. */
interface Target<Rejection> {
  readonly to: AnyDecider<Rejection>
  readonly command: unknown
  readonly stream: string
  readonly cached: CachedAggregate
}

interface Decided {
  readonly to: AnyDecider
  readonly stream: string
  readonly cached: CachedAggregate
  readonly events: ReadonlyArray<Message>
}

interface Memory {
  readonly log: Log["Service"]
  readonly cached: Map<string, CachedAggregate>
}

type Batch<Rejection> = ReadonlyArray<Addressed<Rejection>>
type Conflict = VersionConflict | OutcomeUnknown | LogUnavailable

/** Serves `Commands` in this process. */
export const host = Layer.effect(
  Commands,
  Effect.gen(function* () {
    const memory: Memory = { log: yield* Log, cached: new Map() }
    const inTurn = makeTurns()

    return Commands.of({
      // Commands to the same aggregate are serialized, so that they never conflict here.
      send: (origin, ...commands) =>
        inTurn(commands.map(streamOf), persist(memory, origin, commands, 1)).pipe(
          measuring(commands),
          Effect.flatMap(Effect.fromResult),
          spanned("command", { attributes: () => attributesOf(commands) }),
        ),
    })
  }),
)

/** Span attributes; the first command represents the batch. */
const attributesOf = (commands: Batch<unknown>) => {
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

/** Replaces the sender's trace with the current span; removes it if tracing is off. */
const withTrace = (origin: Origin, trace: Trace | undefined): Origin => {
  if (trace !== undefined) return { ...origin, trace }
  return origin.trace === undefined ? origin : Struct.omit(origin, ["trace"])
}

/** Retries on conflicts until the commands are committed or rejected, or attempts run out. */
const persist = <Rejection>(
  memory: Memory,
  origin: Origin,
  commands: Batch<Rejection>,
  attempt: number,
): Effect.Effect<Result.Result<number, Rejection>, Unavailable> =>
  Effect.catch(tryOnce(memory, origin, commands), (failure: Conflict | Unavailable) => {
    if (failure instanceof Unavailable) return Effect.fail(failure)
    for (const command of commands) memory.cached.delete(streamOf(command))
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
  commands: Batch<Rejection>,
) {
  const used_cache = commands.some((command) => memory.cached.has(streamOf(command)))
  let targets = yield* find(memory, commands, false)
  let decided = decide(origin, targets)
  if (!isProvable(decided) && used_cache) {
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
  return Result.succeed(Math.max(...targets.map(({ cached }) => cached.version)))
})

/**
 * True if the append will validate the decision: it checks the versions only of aggregates that get
 * events, so every aggregate of the batch must get some.
 */
const isProvable = (decided: Result.Result<ReadonlyArray<Decided>, unknown>) =>
  Result.isSuccess(decided) &&
  decided.success.length > 0 &&
  decided.success.every(({ events }) => events.length > 0)

/** Finds the commands' aggregates in the cache, or in the log. */
const find = <Rejection>(memory: Memory, commands: Batch<Rejection>, fresh: boolean) =>
  Effect.forEach(
    commands,
    (addressed) => {
      const { to, command } = addressed
      const stream = streamOf(addressed)
      const known = fresh ? undefined : memory.cached.get(stream)
      const found = known ? Effect.succeed(known) : load(memory.log, to, stream)
      return Effect.map(found, (cached): Target<Rejection> => {
        remember(memory, stream, cached)
        return { to, command, stream, cached }
      })
    },
    { concurrency: commands.length === 1 ? 1 : loads_max },
  )

const reused = new Unavailable({
  detail: "This command id was already used for another command.",
  is_reused: true,
})

/** True if the id belongs to another command. Without a fingerprint it counts as the same one. */
const isReused = (
  { command_id, fingerprint }: Origin,
  targets: ReadonlyArray<Target<unknown>>,
): boolean =>
  fingerprint !== undefined &&
  targets.some(({ cached: { commands, fingerprints } }) => {
    const known = fingerprints?.[commands.indexOf(command_id)] ?? ""
    return known !== "" && known !== fingerprint
  })

/** Decides all commands; no events if the command id was executed already. */
const decide = <Rejection>(
  { command_id }: Origin,
  targets: ReadonlyArray<Target<Rejection>>,
): Result.Result<ReadonlyArray<Decided>, Rejection> => {
  const decided: Array<Decided> = []
  let rejected: Result.Result<never, Rejection> | undefined
  for (const { to, command, stream, cached } of targets) {
    if (cached.commands.includes(command_id)) return Result.succeed([])
    const result = to.decide(cached.state, command)
    if (Result.isFailure(result)) rejected ??= Result.fail(result.failure)
    else decided.push({ to, stream, cached, events: result.success })
  }
  return rejected ?? Result.succeed(decided)
}

const load = Effect.fnUntraced(function* (
  log: Log["Service"],
  to: AnyDecider,
  stream: string,
): Effect.fn.Return<CachedAggregate, LogUnavailable> {
  const tip = yield* log.tip(stream)
  // An unreadable commit does not change the state, but the next commit must follow it.
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
 * The aggregate's state after its last commit; folded from its history if the snapshot is of
 * another machine version. If this release cannot read a newer release's events, it fails with
 * LogUnavailable, so that a process of that release gets the command (decision 0148).
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
  const detail =
    `A newer release has changed ${stream}; this release cannot read it. ` + "Upgrade this process."
  return Effect.catchDefect(folded, () => Effect.fail(new LogUnavailable({ detail })))
}

/** Appends the decided events and returns the last position. */
const append = (memory: Memory, origin: Origin, changes: ReadonlyArray<Decided>) => {
  const commits = changes.map((change) => next(origin, change))
  return Effect.map(memory.log.append(commits.map(({ append }) => append)), (appended) => {
    let last = 0
    for (const [i, { position, hash }] of appended.entries()) {
      last = Math.max(last, position)
      const written = commits[i]
      if (written === undefined) continue
      const { stream, commit } = written.append
      remember(memory, stream, {
        state: written.state,
        version: position,
        hash,
        ...rememberedOf(commit),
      })
    }
    return last
  })
}

/** A commit's command ids, and its fingerprints if there is one per id. */
const rememberedOf = ({ commands, fingerprints }: Commit) => ({
  commands,
  fingerprints: fingerprints?.length === commands.length ? fingerprints : undefined,
})

/** The fingerprints including this command's; undefined if no command has one. */
const fingerprintsAfter = (
  { commands, fingerprints }: CachedAggregate,
  fingerprint: string | undefined,
) => {
  if (fingerprint === undefined && fingerprints === undefined) return undefined
  const before = fingerprints ?? commands.map(() => "")
  const prints = [...before.slice(1 - commands_remembered_max), fingerprint ?? ""]
  return prints.some((print) => print !== "") ? prints : undefined
}

/** Caches a state and evicts the least recently used one. */
const remember = ({ cached }: Memory, stream: string, now: CachedAggregate) => {
  cached.delete(stream)
  cached.set(stream, now)
  const [oldest] = cached.size > cached_max ? cached.keys() : []
  if (oldest !== undefined) cached.delete(oldest)
}

/** The state after the events, and the commit that records it. */
const next = (origin: Origin, { to, stream, cached, events }: Decided) => {
  const state = to.after(cached.state, events)
  const { command_id, fingerprint, ...rest } = origin
  const fingerprints = fingerprintsAfter(cached, fingerprint)
  const commit: Commit = {
    v: 1,
    ...rest,
    events,
    snapshot: to.save(state),
    commands: [...cached.commands.slice(1 - commands_remembered_max), command_id],
    ...(fingerprints === undefined ? {} : { fingerprints }),
    prev: cached.hash,
  }
  const append: Append = { stream, expected: cached.version, commit }
  return { state, append }
}
