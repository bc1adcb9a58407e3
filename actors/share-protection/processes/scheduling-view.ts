/** The view of the scheduling process: policies, targets, domains and the scheduler. */
import { Effect } from "effect"
import { timeOfId } from "#actors/share-protection/derived-id.ts"
import { Domain, domainAfter } from "#actors/share-protection/domain.ts"
import { Policy, policyAfter } from "#actors/share-protection/policy.ts"
import { parseSchedule, type Schedule } from "#actors/share-protection/processes/schedule.ts"
import { Scheduler, schedulerAfter } from "#actors/share-protection/scheduler.ts"
import { Target, targetAfter } from "#actors/share-protection/target.ts"
import { type Log, parseStream, type Recorded } from "#events/log.ts"
import type { Message } from "#schemas/message.ts"
import type { DomainSettings } from "#schemas/share-protection/domain.ts"
import {
  DomainId,
  type ProjectId,
  ShareId,
  TargetId,
  type TargetTemplateId,
} from "#schemas/share-protection/id.ts"
import type { DefinePolicy } from "#schemas/share-protection/policy.ts"

/** An enabled policy. */
export interface ScheduledPolicy {
  readonly policy: Omit<typeof DefinePolicy.Type, "type">
  readonly schedule: Schedule
  /** Only later ticks count, as epoch milliseconds. */
  readonly since: number
  /** Position of its last commit. */
  readonly position: number
}

export interface TargetPlacement {
  readonly project_id: ProjectId | null
  readonly domain_id: DomainId | null
  readonly template_id: TargetTemplateId | null
}

export interface SchedulingView {
  readonly policies: Map<ShareId, ScheduledPolicy>
  readonly targets: Map<TargetId, TargetPlacement>
  readonly domains: Map<DomainId, DomainSettings>
  /** Parsed schedules, which policies share. */
  readonly schedules: Map<string, Schedule>
  is_paused: boolean
  /** Ticks before this time do not count; epoch milliseconds. */
  resumed_at: number
}

export const emptySchedulingView = (): SchedulingView => ({
  policies: new Map(),
  targets: new Map(),
  domains: new Map(),
  schedules: new Map(),
  is_paused: false,
  resumed_at: 0,
})

/** Folds a commit into the view and returns the share whose schedule may have changed. */
export const foldScheduling = Effect.fnUntraced(function* (
  log: Log["Service"],
  view: SchedulingView,
  recorded: Recorded,
) {
  const { name, id } = parseStream(recorded.stream)
  if (name === Policy.name) {
    const share_id = ShareId.make(id)
    yield* foldPolicy(log, view, recorded, share_id)
    return share_id
  }
  if (name === Target.name) {
    const { status, project_id, domain_id, template_id } = yield* targetAfter(log, recorded)
    const target_id = TargetId.make(id)
    if (status === "deleted") view.targets.delete(target_id)
    else view.targets.set(target_id, { project_id, domain_id, template_id })
  }
  if (name === Domain.name) {
    view.domains.set(DomainId.make(id), (yield* domainAfter(log, recorded)).applied)
  }
  if (name === Scheduler.name) {
    const { state, resumed_at } = yield* schedulerAfter(log, recorded)
    view.is_paused = state === "paused"
    view.resumed_at = resumed_at === null ? 0 : Date.parse(resumed_at)
  }
  return undefined
})

const foldPolicy = Effect.fnUntraced(function* (
  log: Log["Service"],
  view: SchedulingView,
  recorded: Recorded,
  share_id: ShareId,
) {
  const { policy, last_tick } = yield* policyAfter(log, recorded)
  const schedule = policy?.enabled ? scheduleOf(view, policy) : undefined
  if (policy === null || schedule === undefined) {
    view.policies.delete(share_id)
    return
  }
  const { commit, position } = recorded
  const is_new = commit.events.some(isRestart)
  const since = Math.max(
    last_tick === null ? 0 : Date.parse(last_tick),
    timeOfId(policy.id),
    is_new ? Date.parse(commit.at) : 0,
    view.policies.get(share_id)?.policy.id === policy.id
      ? (view.policies.get(share_id)?.since ?? 0)
      : 0,
  )
  view.policies.set(share_id, { policy, schedule, since, position })
})

/** Whether the event restarts the schedule, so that earlier ticks no longer count. */
const isRestart = (event: Message) =>
  event.type === "PolicyDefined" ||
  (event.type === "PolicyUpdated" &&
    ["schedule", "timezone", "enabled"].some((field) => field in event))

const scheduleOf = ({ schedules }: SchedulingView, policy: ScheduledPolicy["policy"]) => {
  const key = `${policy.timezone} ${policy.schedule}`
  const known = schedules.get(key)
  if (known) return known
  const parsed = parseSchedule(policy.schedule, policy.timezone)
  // Policies with an invalid schedule were rejected when they were defined.
  if (parsed._tag === "Failure") return undefined
  schedules.set(key, parsed.success)
  return parsed.success
}
