/**
 * Scheduling: requests the scheduled backups of policies.
 *
 * An event of the policy records each used or skipped tick, so that a restart does not repeat it.
 * Of the ticks missed during downtime only the last one is used.
 *
 * Source: document 2 §1, §3 Scheduler, §8 conductor.scheduler_interval; DECISIONS, quotas.
 */
import { DateTime, Effect } from "effect"
import { Agenda } from "#actors/agenda.ts"
import { address, Commands, Unavailable } from "#actors/commands.ts"
import type { Batch, Caused, Process } from "#actors/process.ts"
import { derivedId } from "#actors/share-protection/derived-id.ts"
import { Policy } from "#actors/share-protection/policy.ts"
import { jitterOf, ticksAt } from "#actors/share-protection/processes/schedule.ts"
import {
  emptySchedulingView,
  foldScheduling,
  type ScheduledPolicy,
  type SchedulingView,
} from "#actors/share-protection/processes/scheduling-view.ts"
import { type BackupRequest, requestBackup } from "#actors/share-protection/requests.ts"
import { Log } from "#events/log.ts"
import { BackupId, JobId, type ShareId, type TargetId } from "#schemas/share-protection/id.ts"
import type { Quotas } from "#schemas/share-protection/ledger.ts"
import { type SkipReason, SkipTick } from "#schemas/share-protection/policy.ts"
import type { Rejection } from "#schemas/share-protection/rejection.ts"

const name = "share-protection-scheduling"

export interface SchedulingOptions {
  /** Interval between checks of the schedules. */
  readonly scheduler_interval_seconds: number
  /** Maximum delay of ticks; constant for each policy. */
  readonly schedule_jitter_seconds: number
  /** The quotas of projects whose domain sets none. */
  readonly quotas: Quotas
}

/**
 * The target of a policy's backups: its own, or else the project's or the shared target of its
 * template.
 */
const targetOf = (
  { targets }: SchedulingView,
  { policy }: ScheduledPolicy,
): TargetId | undefined => {
  if (policy.target_id !== null) return policy.target_id
  let shared: TargetId | undefined
  for (const [target_id, { template_id, project_id }] of targets) {
    if (template_id !== policy.target_template_id) continue
    if (project_id === policy.project_id) return target_id
    if (project_id === null) shared = target_id
  }
  return shared
}

const limitOf = (view: SchedulingView, target_id: TargetId, quotas: Quotas) => {
  const domain_id = view.targets.get(target_id)?.domain_id
  const own = domain_id && view.domains.get(domain_id)?.quotas
  return own?.backups ?? quotas.backups
}

/** The reason for a skipped tick, by error code. */
const reasons: Partial<Readonly<Record<Rejection["code"], SkipReason>>> = {
  "svc.quota_exceeded": "quota_exceeded",
  "svc.conflict": "backup_in_flight",
  "svc.repository_locked": "repository_locked",
}

/** Requests the backup of a tick, or skips the tick if the request is rejected. */
const takeTick = (
  view: SchedulingView,
  commands: Commands["Service"],
  options: SchedulingOptions,
  share_id: ShareId,
  scheduled: ScheduledPolicy,
  tick_ms: number,
): Caused => {
  const tick = DateTime.formatIso(DateTime.makeUnsafe(tick_ms))
  const command_id = `sched-${scheduled.policy.id}-${tick}`
  const cause = String(scheduled.position)
  // Built lazily, because many ticks are due at the same moment.
  const batch = Effect.suspend(() => {
    const { policy } = scheduled
    const target_id = targetOf(view, scheduled)
    if (target_id === undefined) return Effect.succeed(skip(share_id, policy, tick, unavailable))
    const limit = limitOf(view, target_id, options.quotas)
    const request = requestBackup(requestOf(command_id, share_id, policy, target_id, tick), limit)
    return sendRequest(commands, { command_id, cause }, request).pipe(
      Effect.map((refusal) =>
        refusal === undefined
          ? []
          : skip(share_id, policy, tick, reasons[refusal.code] ?? unavailable),
      ),
    )
  })
  return { command_id, cause, batch }
}

const unavailable = "target_unavailable"

const skip = (
  share_id: ShareId,
  { id: policy_id }: ScheduledPolicy["policy"],
  tick: string,
  reason: SkipReason,
): Batch => [address(Policy, share_id, SkipTick.make({ policy_id, tick, reason }))]

const requestOf = (
  command_id: string,
  share_id: ShareId,
  { id: policy_id, project_id, max_retries }: ScheduledPolicy["policy"],
  target_id: TargetId,
  tick: string,
): BackupRequest => ({
  backup_id: BackupId.make(derivedId(`${command_id}-backup`, tick)),
  job_id: JobId.make(derivedId(`${command_id}-job`, tick)),
  project_id,
  share_id,
  target_id,
  policy_id,
  crash_consistent_wanted: null,
  tick,
  max_retries,
})

/** Sends the request and returns its rejection, if any. */
const sendRequest = Effect.fnUntraced(function* (
  { send }: Commands["Service"],
  about: { readonly command_id: string; readonly cause: string },
  request: ReturnType<typeof requestBackup>,
) {
  const at = DateTime.formatIso(yield* DateTime.now)
  return yield* send({ ...about, actor: `process:${name}`, at }, ...request).pipe(
    Effect.as(undefined),
    Effect.catch((refusal) =>
      refusal instanceof Unavailable ? Effect.fail(refusal) : Effect.succeed(refusal),
    ),
  )
})

/** Runs on a single conductor. */
export const scheduling = (options: SchedulingOptions) =>
  Effect.map(
    Commands,
    (commands): Process => ({
      name,
      part: "share-protection",
      from: "lasts",
      start: Effect.gen(function* () {
        const log = yield* Log
        const view = emptySchedulingView()
        const agenda = Agenda.make<ShareId>()
        /** Due ticks, each valid until the schedule's next tick. */
        const found = new Map<ShareId, { readonly request: Caused; readonly until: number }>()
        const interval_ms = options.scheduler_interval_seconds * 1000

        const ticksOf = ({ policy, schedule, since }: ScheduledPolicy, now: number) =>
          ticksAt(schedule, {
            since: Math.max(since, view.resumed_at),
            now,
            jitter_ms: jitterOf(policy.id, options.schedule_jitter_seconds),
          })

        /** Plans the share's next check: the first one at or after its next tick. */
        const plan = (share_id: ShareId) => {
          const scheduled = view.policies.get(share_id)
          const from =
            scheduled === undefined ? Infinity : Math.max(scheduled.since, view.resumed_at)
          const at = scheduled === undefined ? Infinity : ticksOf(scheduled, from).next_at
          const check_at = Math.ceil(at / interval_ms) * interval_ms
          agenda.set(share_id, Number.isFinite(check_at) ? [{ at: check_at, item: share_id }] : [])
          found.delete(share_id)
        }

        const dueAt = (share_id: ShareId, now: number) => {
          const known = found.get(share_id)
          if (known !== undefined && now < known.until) return [known.request]
          const scheduled = view.policies.get(share_id)
          if (scheduled === undefined) return []
          const { due, next_at: until } = ticksOf(scheduled, now)
          if (due === undefined) return []
          const taken = takeTick(view, commands, options, share_id, scheduled, due)
          found.set(share_id, { request: taken, until })
          return [taken]
        }

        return {
          fold: Effect.fnUntraced(function* (recorded) {
            const resumed_at = view.resumed_at
            const changed = yield* foldScheduling(log, view, recorded)
            if (changed !== undefined) plan(changed)
            if (view.resumed_at !== resumed_at)
              for (const share_id of view.policies.keys()) plan(share_id)
          }),
          due: (now) => {
            if (view.is_paused) return { now: [] }
            const { now: shares, ...later } = agenda.due(now)
            return { now: shares.flatMap((share_id) => dueAt(share_id, now)), ...later }
          },
        }
      }),
    }),
  )
