/**
 * Health of the command path, as one process observes it.
 *
 * Regular commands prove that the log accepts commits. Without any, the process sends a probe: on a
 * health check after minutes without a commit, and while the last command failed. The log keeps
 * every commit, so probes are rare: about 1 KB every five minutes at most, which is 110 MB a year
 * in an idle deployment.
 */
import { Clock, Context, DateTime, Effect, Fiber, Layer, type Scope } from "effect"
import { address, Commands, type Unavailable } from "#actors/commands.ts"
import { Probe, probe_id } from "#actors/system/probe.ts"
import { Log } from "#events/log.ts"
import { ProbePath } from "#schemas/system/probe.ts"

/** Commands that fail for longer than this make a process unready. Source: DECISIONS, "health". */
export const failing_ms_max = 10_000

/** A commit this recent proves that the log accepts commits, in milliseconds. */
const proof_ms_max = 300_000

/** A command without a response for this long counts as failing, in milliseconds. */
const late_ms = 2_000

/** Milliseconds between two probes while commands fail. */
const retry_ms = 5_000

/** How long `/readyz` waits for a probe, in milliseconds: most take ten. */
const wait_ms = 1_000

export interface CommandStanding {
  /** Time of the last commit by this process, or that it saw in the log. */
  readonly proven_ms: number | undefined
  /** Start of the current failure; undefined while commands are committed. */
  readonly failing_ms: number | undefined
  /** Error of the last command; undefined if it got no response. */
  readonly detail: string | undefined
}

export class CommandPath extends Context.Service<
  CommandPath,
  {
    /** The current status. */
    readonly standing: Effect.Effect<CommandStanding>
    /** The status after a probe, if there is no recent proof. Time and number are bounded. */
    readonly check: Effect.Effect<CommandStanding>
  }
>()("actors/CommandPath") {}

/** Records the outcomes of this process's commands, by wall clock. */
const newRecord = () => {
  /** Commands that wait for a response, oldest first. */
  const open = new Set<{ readonly sent_ms: number }>()
  let proven_ms: number | undefined
  let position_max = 0
  let failed_ms: number | undefined
  let detail: string | undefined
  const prove = (position: number, now_ms: number) => {
    // A command without changes returns an earlier position: it only read the log.
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

/** Wraps `Commands` to record every outcome. */
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

/** Rejections and reused ids are responses, not failures. */
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
  /** All probes of one time slot send the same command, which is executed once. */
  const probe = Effect.fnUntraced(function* (now_ms: number, slot_ms: number) {
    const at = DateTime.formatIso(DateTime.makeUnsafe(now_ms))
    // Short, because each commit contains the last 64 ids.
    const command_id = `p${Math.floor(now_ms / slot_ms).toString(36)}.${slot_ms / 1000}`
    const origin = { command_id, actor: "process:system-probe", at }
    yield* commands.send(origin, address(Probe, probe_id, ProbePath.make({})))
  })
  let head: number | undefined
  /** Checks for commits of other processes first. */
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
      // The record has the outcome.
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

/** Records the commands of the layer below, and reports their health. */
export const commandPath = Layer.effectContext(
  Effect.gen(function* () {
    const clock = yield* Clock.Clock
    const record = newRecord()
    const commands = recorded(yield* Commands, record, clock)
    const standing = Effect.map(Clock.currentTimeMillis, record.standing)
    const probe = prober(commands, yield* Log, record, yield* Effect.scope)
    return Context.make(Commands, commands).pipe(
      Context.add(CommandPath, { standing, check: Effect.andThen(probe, standing) }),
    )
  }),
)
