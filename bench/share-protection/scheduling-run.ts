/**
 * The real scheduling process over a log in JetStream, one tick after another; and the bare log
 * with the same number of commits of the same bytes in the same batches, without any decisions.
 */
import { join } from "node:path"
import { Clock, Effect, Layer, ManagedRuntime, References, Stream } from "effect"
import { Commands } from "#actors/commands.ts"
import { host } from "#actors/host.ts"
import { runProcess } from "#actors/process.ts"
import { Policy, policyAfter } from "#actors/share-protection/policy.ts"
import { scheduling } from "#actors/share-protection/processes/scheduling.ts"
import { ownServerLayer } from "#adapters/bus/own-server.ts"
import { DataFolder } from "#adapters/data-folder/lock.ts"
import { NatsConnection } from "#bus"
import { Log, parseStream, type Recorded } from "#events/log.ts"
import { logJetStream } from "#journal"
import { type BackupId, ShareId } from "#schemas/share-protection/id.ts"
import { finish, first_tick_ms, in_flight, limit, policies_total, prepare } from "./due-policies.ts"
import { makeForwardClock } from "./forward-clock.ts"

const day_ms = 86_400_000

/** Commits for a requested backup: policy, target, ledger, backup and job. */
const commits_each = 5

const app = (folder: string) =>
  host.pipe(
    Layer.provideMerge(logJetStream({ stream: "ALMANAC_LOG" })),
    Layer.provide(NatsConnection.layer),
    Layer.provide(ownServerLayer()),
    Layer.provide(DataFolder.layer(join(folder, "almanac"))),
    // As in a server without a trace collector.
    Layer.merge(Layer.succeed(References.TracerEnabled, false)),
  )

/** Commands that report the size of each committed batch. */
const watched = (onSent: (commands: number) => void) =>
  Effect.map(Commands, ({ send }) =>
    Commands.of({
      send: (origin, ...commands) =>
        Effect.tap(send(origin, ...commands), () => Effect.sync(() => onSent(commands.length))),
    }),
  )

/** Runs the process with a clock that is moved forward, until its runtime ends. */
const conduct = Effect.fnUntraced(function* (
  clock: Effect.Effect<Clock.Clock>,
  onSent: (commands: number) => void,
) {
  const commands = yield* watched(onSent)
  const options = {
    scheduler_interval_seconds: 1,
    schedule_jitter_seconds: 0,
    quotas: { targets: limit, policies: limit, backups: limit },
  }
  const running = Effect.flatMap(scheduling(options), runProcess).pipe(
    Effect.provideService(Commands, commands),
    Effect.provideService(Clock.Clock, yield* clock),
  )
  return yield* running
})

/** The commits after a position, and each share's backup in progress. */
const written = Effect.fnUntraced(function* (head: number) {
  const log = yield* Log
  const commits = yield* Stream.runCollect(log.read("share-protection", head))
  const backups: Array<readonly [ShareId, BackupId]> = []
  for (const recorded of commits) {
    const { name, id } = parseStream(recorded.stream)
    const { backup } = name === Policy.name ? yield* policyAfter(log, recorded) : { backup: null }
    if (backup !== null) backups.push([ShareId.make(id), backup.backup_id])
  }
  return { commits, backups }
})

/** The same commits in the same batches, each to a separate stream. */
const bareAppends = (commits: ReadonlyArray<Recorded>, round: number) => {
  const batches = Map.groupBy(commits.entries(), ([, { commit }]) => commit.commands.at(-1))
  return [...batches.values()].map((batch) =>
    batch.map(([i, { stream, commit }]) => {
      const { name, id } = parseStream(stream.replace("share-protection", "bare"))
      return { stream: `${name}.${id}-${round}-${i}`, expected: 0, commit }
    }),
  )
}

/** A server in `folder` with the policies in its log. */
export const openScheduling = async (folder: string) => {
  const runtime = ManagedRuntime.make(app(folder))
  await runtime.runPromise(prepare)
  const { clock, set } = makeForwardClock(first_tick_ms - day_ms / 2)
  let onSent = (_commands: number) => {}
  runtime.runFork(conduct(clock, (commands) => onSent(commands)))
  let round = 0
  let last: ReadonlyArray<Recorded> = []

  /** Makes all policies due at once; returns the seconds until the last backup is in the log. */
  const tick = async () => {
    const head = await runtime.runPromise(Effect.flatMap(Log, (log) => log.head("")))
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    let sent = 0
    onSent = (commands) => {
      if (commands !== commits_each) reject(new Error("a tick was skipped"))
      if (++sent === policies_total) resolve()
    }
    const began = performance.now()
    set(first_tick_ms + round++ * day_ms)
    await promise
    const seconds = (performance.now() - began) / 1000
    const { commits, backups } = await runtime.runPromise(written(head))
    if (commits.length !== policies_total * commits_each || backups.length !== policies_total)
      throw new Error(`${commits.length} commits of ${backups.length} backups`)
    last = commits
    await runtime.runPromise(finish(round, backups))
    return seconds
  }

  /** Appends the last tick's commits once more. */
  const repeat = async () => {
    const appends = bareAppends(last, round)
    const { append } = await runtime.runPromise(Log)
    const began = performance.now()
    await runtime.runPromise(
      Effect.forEach(appends, append, { concurrency: in_flight, discard: true }),
    )
    return (performance.now() - began) / 1000
  }

  return { tick, repeat, stop: () => runtime.dispose() }
}
