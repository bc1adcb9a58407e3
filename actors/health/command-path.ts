/**
 * Whether commands can be committed, as a process knows it by its own.
 *
 * Commands of others are the proof where there are any. Where there are none, one is sent to an
 * aggregate of the machinery: when somebody asks after minutes without a commit, and as long as
 * the last command failed. Nothing in the log ages, so probes are few: a commit of about 1 KB at
 * most every five minutes, 110 MB a year of a deployment that does nothing else.
 */
import { Clock, Context, DateTime, Effect, Fiber, Layer, type Scope } from "effect"
import { address, Commands, type Unavailable } from "#actors/commands.ts"
import { Probe, probe_id } from "#actors/system/probe.ts"
import { Log } from "#events/log.ts"
import { ProbePath } from "#schemas/system/probe.ts"

/** Commands that fail for longer than this make a process unready. Source: DECISIONS, "health". */
export const failing_ms_max = 10_000

/** A commit this recent proves that the log takes commits, in milliseconds. */
const proof_ms_max = 300_000

/** A command that is not answered for so long counts as failing, in milliseconds. */
const late_ms = 2_000

/** Milliseconds between two probes while commands fail. */
const retry_ms = 5_000

/** How long a reader of `/readyz` waits for a probe, in milliseconds: most take ten. */
const wait_ms = 1_000

export interface CommandStanding {
  /** When a command of this process, or one that it saw in the log, was committed last. */
  readonly proven_ms: number | undefined
  /** Since when commands fail or are not answered; undefined while they are committed. */
  readonly failing_ms: number | undefined
  /** Why the last one failed; undefined where it was not answered. */
  readonly detail: string | undefined
}

export class CommandPath extends Context.Service<
  CommandPath,
  {
    /** What is known now. */
    readonly standing: Effect.Effect<CommandStanding>
    /** The same, after a probe where nothing recent is known. Bounded; probes at most as named. */
    readonly ask: Effect.Effect<CommandStanding>
  }
>()("actors/CommandPath") {}

/** What the commands of this process did, on the wall clock. */
const newRecord = () => {
  /** When each command that is not answered was sent, the oldest first. */
  const open = new Set<{ readonly sent_ms: number }>()
  let proven_ms: number | undefined
  let position_max = 0
  let failed_ms: number | undefined
  let detail: string | undefined
  const prove = (position: number, now_ms: number) => {
    // A command that changed nothing answers an earlier position: the log was only read.
    if (position <= position_max) return
    position_max = position
    proven_ms = now_ms
    failed_ms = undefined
    detail = undefined
  }
  return {
    prove,
    begin: (sent_ms: number) => {
      const one = { sent_ms }
      open.add(one)
      return {
        end: () => void open.delete(one),
        fail: (why: string) => {
          failed_ms ??= sent_ms
          detail = why
        },
      }
    },
    standing: (now_ms: number): CommandStanding => {
      const [oldest] = open
      const { sent_ms = Infinity } = oldest ?? {}
      const is_late = sent_ms > (proven_ms ?? 0) && now_ms - sent_ms >= late_ms
      const failing_ms = Math.min(failed_ms ?? Infinity, is_late ? sent_ms : Infinity)
      return { proven_ms, failing_ms: Number.isFinite(failing_ms) ? failing_ms : undefined, detail }
    },
  }
}

type CommandRecord = ReturnType<typeof newRecord>

/** The same commands, each of them recorded. */
const recorded = (commands: Commands["Service"], record: CommandRecord, clock: Clock.Clock) =>
  Commands.of({
    send: (origin, ...addressed) =>
      Effect.suspend(() => {
        const { end, fail } = record.begin(clock.currentTimeMillisUnsafe())
        return commands.send(origin, ...addressed).pipe(
          Effect.tap((position) =>
            Effect.sync(() => record.prove(position, clock.currentTimeMillisUnsafe())),
          ),
          Effect.tapError((failure) =>
            Effect.sync(() => isFailure(failure) && fail(failure.detail)),
          ),
          Effect.ensuring(Effect.sync(end)),
        )
      }),
  })

/** A rejection is an answer; so is a reused id. */
const isFailure = (failure: unknown): failure is Unavailable =>
  failure instanceof Object &&
  "_tag" in failure &&
  failure._tag === "Unavailable" &&
  !("is_reused" in failure && failure.is_reused === true)

/** Sends probes, one at a time. */
const prober = (
  commands: Commands["Service"],
  log: Log["Service"],
  record: CommandRecord,
  scope: Scope.Scope,
) => {
  let probe_ms = Number.NEGATIVE_INFINITY
  let is_probing = false
  /** All probes of one slot send the same command, which is carried out once. */
  const probe = Effect.fnUntraced(function* (now_ms: number, slot_ms: number) {
    const at = DateTime.formatIso(DateTime.makeUnsafe(now_ms))
    // Short, since the last 64 ids are in each commit of an aggregate.
    const command_id = `p${Math.floor(now_ms / slot_ms).toString(36)}.${slot_ms / 1000}`
    const origin = { command_id, actor: "process:system-probe", at }
    yield* commands.send(origin, address(Probe, probe_id, ProbePath.make({})))
  })
  let head: number | undefined
  /** Another process may have committed something since the last look. */
  const look = Effect.fnUntraced(function* (now_ms: number) {
    const before = head
    head = yield* Effect.orElseSucceed(log.head(""), () => before)
    if (head !== undefined && before !== undefined && head > before) {
      record.prove(head, now_ms)
      if (record.standing(now_ms).proven_ms === now_ms) return
    }
    yield* probe(now_ms, proof_ms_max)
  })
  return Effect.gen(function* () {
    const now_ms = yield* Clock.currentTimeMillis
    const { proven_ms = Number.NEGATIVE_INFINITY, failing_ms } = record.standing(now_ms)
    const is_failing = failing_ms !== undefined
    if (is_probing || (!is_failing && now_ms - proven_ms < proof_ms_max)) return
    if (now_ms - probe_ms < retry_ms) return
    probe_ms = now_ms
    is_probing = true
    const probing = (is_failing ? probe(now_ms, retry_ms) : look(now_ms)).pipe(
      // What came of it is in the record.
      Effect.ignore,
      Effect.ensuring(
        Effect.sync(() => {
          is_probing = false
        }),
      ),
    )
    const fiber = yield* Effect.forkIn(probing, scope)
    yield* Effect.ignore(Effect.timeoutOption(Fiber.await(fiber), wait_ms))
  })
}

/** Records the commands of the layer below, and answers for them. */
export const commandPath = Layer.effectContext(
  Effect.gen(function* () {
    const clock = yield* Clock.Clock
    const record = newRecord()
    const commands = recorded(yield* Commands, record, clock)
    const standing = Effect.map(Clock.currentTimeMillis, record.standing)
    const probe = prober(commands, yield* Log, record, yield* Effect.scope)
    return Context.make(Commands, commands).pipe(
      Context.add(CommandPath, { standing, ask: Effect.andThen(probe, standing) }),
    )
  }),
)
