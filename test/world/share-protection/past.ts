/** Random logs that the state charts of share protection permit, and all queries on them. */
import { Effect } from "effect"
import fc from "fast-check"
import { type AnyMachineSnapshot, initialTransition, transition } from "xstate"
import { Log, type Recorded } from "#events/log.ts"
import { findPolicy, listPolicies } from "#projections/share-protection/policy.ts"
import { findTarget, listTargets } from "#projections/share-protection/target.ts"
import { coverageOf, usageOf } from "#projections/share-protection/usage.ts"
import type { Message } from "#schemas/message.ts"
import { PolicyId, ProjectId, TargetId } from "#schemas/share-protection/id.ts"
import { happenings } from "./happenings.ts"
import { type emptyModel, recorded, second } from "./read-model.ts"
import { domain_id, policy_id, project_id, share_id, target_id, uuid } from "./samples.ts"

type Db = Effect.Success<typeof emptyModel>["db"]
type Kind = keyof typeof happenings

/**
 * An event's aggregate, by kind and index, the event's index, and the seconds since the last step.
 */
export interface Step {
  readonly kind: Kind
  readonly which: number
  readonly what: number
  readonly after_s: number
}

export const each_kind = 3
const projects = [project_id, ProjectId.make("p2"), ProjectId.make("p3")]

export const kinds = Object.keys(happenings) as ReadonlyArray<Kind>

/** The id of a kind's `which`-th aggregate. */
export const idOf = (kind: Kind, which: number) => uuid(100 * (kinds.indexOf(kind) + 1) + which)

const policyId = (which: number) => uuid(5000 + which)

/** The sample event with the ids of the `which`-th aggregate. */
const own = (event: Message, which: number): Message =>
  JSON.parse(
    JSON.stringify(event)
      .replaceAll(policy_id, policyId(which))
      .replaceAll(share_id, idOf("policy", which))
      .replaceAll(target_id, idOf("target", which))
      .replaceAll(project_id, projects[which % each_kind] ?? "")
      .replaceAll(
        '"domain_id":null',
        which % each_kind === 1 ? `"domain_id":"${domain_id}"` : "$&",
      ),
  )

/** Builds a log that the charts permit from steps that they may not permit. */
export const logOf = (steps: ReadonlyArray<Step>): ReadonlyArray<Recorded> => {
  const states = new Map<string, AnyMachineSnapshot>()
  const log: Array<Recorded> = []
  let at_s = 0
  for (const { kind, which, what, after_s } of steps) {
    const { machine, events } = happenings[kind]
    const stream = `${kind}.${idOf(kind, which)}`
    const state = states.get(stream) ?? initialTransition(machine)[0]
    const possible = events.filter((event) => state.can(event))
    const event = possible[what % possible.length]
    if (event === undefined) continue
    at_s += after_s
    states.set(stream, transition(machine, state, event)[0])
    log.push(recorded(log.length + 1, stream, second(at_s), [own(event, which)]))
  }
  return log
}

export const stepsOf = (...kinds: ReadonlyArray<Kind>) =>
  fc.array(
    fc.record({
      kind: fc.constantFrom(...kinds),
      which: fc.nat(each_kind - 1),
      what: fc.nat(1000),
      after_s: fc.nat(2),
    }),
    { minLength: 40, maxLength: 120 },
  )

/** A row without the fields that only current rows have. */
const kept = <Row extends object>(rows: ReadonlyArray<Row>) =>
  rows.map((row) => ({ ...row, last_tick: null, in_flight_backup_id: null }))

const page = { limit: 2 }
const whole = { limit: 100 }

/** The results of all queries as of that time, or of now without a time. */
export const answers = (db: Db, as_of?: string) =>
  Effect.gen(function* () {
    const [first] = projects
    const targets = yield* listTargets(db, {}, whole, as_of)
    const policies = yield* listPolicies(db, {}, whole, as_of)
    const marker = targets.rows[0]?.id
    return {
      targets,
      more: yield* listTargets(db, {}, { limit: 1, marker }, as_of),
      of_project: yield* listTargets(db, { project_id: first }, page, as_of),
      of_status: yield* listTargets(db, { status: "available" }, page, as_of),
      one: yield* findTarget(db, TargetId.make(idOf("target", 1)), as_of),
      policies: kept(policies.rows),
      of_target: kept(
        (yield* listPolicies(db, { target_id: TargetId.make(idOf("target", 0)) }, page, as_of))
          .rows,
      ),
      policy: kept([(yield* findPolicy(db, PolicyId.make(policyId(2)), as_of)) ?? {}]),
      usage: yield* usageOf(db, {}, as_of),
      usage_of_project: yield* usageOf(db, { project_id: first }, as_of),
      usage_of_domain: yield* usageOf(db, { domain_id }, as_of),
      coverage: yield* coverageOf(db, as_of),
    }
  })

/** Appends the log of these steps, each commit to the end of its stream. */
export const append = Effect.fnUntraced(function* (steps: ReadonlyArray<Step>) {
  const log = yield* Log
  const ends = new Map<string, number>()
  for (const { stream, commit } of logOf(steps)) {
    const prev = log.hashOf(stream)
    const [end] = yield* log.append([
      { stream, expected: ends.get(stream) ?? 0, commit: { ...commit, prev } },
    ])
    ends.set(stream, end?.position ?? 0)
  }
})
