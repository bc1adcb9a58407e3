/**
 * Ownership of resources. Only this module decides that a resource of another owner is reported as
 * missing.
 *
 * Source: document 2 §5, §7 svc.not_found; DECISIONS, document 2, target Shape B.
 */
import { Effect, Option, Schema } from "effect"
import type { Caller } from "#gateway/caller.ts"
import { RequestContext } from "#gateway/request-context.ts"
import { caughtUp } from "#gateway/share-protection/commands.ts"
import { ShareProtectionModel } from "#projections/share-protection/blueprint.ts"
import { findJob, type JobRow } from "#projections/share-protection/job.ts"
import { findTarget } from "#projections/share-protection/target.ts"
import { DomainId, JobId, ProjectId, TargetId } from "#schemas/share-protection/id.ts"
import { Forbidden, NotFound } from "#schemas/share-protection/rejection.ts"
import type { TargetRow } from "#schemas/share-protection/target.ts"
import { idText } from "#schemas/share-protection/views/page.ts"

export const callerOf = Effect.map(RequestContext, ({ caller }) => caller)

const isProjectId = Schema.is(ProjectId)
const isDomainId = Schema.is(DomainId)

/** The project of the caller's token. */
export const ownProject = Effect.flatMap(callerOf, ({ project_id }) =>
  isProjectId(project_id)
    ? Effect.succeed(project_id)
    : Effect.fail(new Forbidden({ detail: "The token is not scoped to a project." })),
)

/** The domain of the caller's token, or of its project; null if unknown. */
export const ownDomain = Effect.map(callerOf, ({ domain_id, project_domain_id }) => {
  const own = domain_id ?? project_domain_id
  return isDomainId(own) ? own : null
})

/**
 * The row of this id. Reports a missing row only after the read model has caught up with the log;
 * an invalid id matches nothing.
 */
export const findExisting = Effect.fnUntraced(function* <Id extends string, Row>(
  noun: string,
  id: Schema.Codec<Id, string>,
  text: string,
  find: (id: Id) => Effect.Effect<Row | undefined>,
) {
  const absent = new NotFound({ detail: `No such ${noun}.` })
  const known = Schema.decodeUnknownOption(id)(text)
  if (Option.isNone(known)) return yield* absent
  const row = (yield* find(known.value)) ?? (yield* Effect.andThen(caughtUp, find(known.value)))
  return row ?? (yield* absent)
})

/** The row of this id, if the caller's project owns it. */
export const findOwned = Effect.fnUntraced(function* <
  Id extends string,
  Row extends { readonly project_id: string | null },
>(
  noun: string,
  id: Schema.Codec<Id, string>,
  text: string,
  find: (id: Id) => Effect.Effect<Row | undefined>,
) {
  const { project_id } = yield* callerOf
  const row = yield* findExisting(noun, idText(id), text, find)
  const is_own = project_id !== undefined && row.project_id === project_id
  return is_own ? row : yield* new NotFound({ detail: `No such ${noun}.` })
})

/** A domain's owner sees the targets registered against the domain's templates. */
const isOfTarget = ({ project_id, domain_id }: Caller, target: TargetRow) =>
  project_id === undefined
    ? domain_id !== undefined && target.template_id !== null && target.domain_id === domain_id
    : target.project_id === project_id

/** The target, if the caller may see it; now, or as of an `Instant`. */
export const ownedTarget = Effect.fnUntraced(function* (text: string, as_of?: string) {
  const { db } = yield* ShareProtectionModel
  const find = (id: TargetId) => findTarget(db, id, as_of)
  const target = yield* findExisting("target", idText(TargetId), text, find)
  const is_own = isOfTarget(yield* callerOf, target)
  return is_own ? target : yield* new NotFound({ detail: "No such target." })
})

const isOfJob = Effect.fnUntraced(function* (caller: Caller, job: JobRow) {
  if (caller.project_id !== undefined) return job.project_id === caller.project_id
  const { db } = yield* ShareProtectionModel
  const target = yield* findTarget(db, job.target_id)
  return target !== undefined && isOfTarget(caller, target)
})

/** The job, if the caller may see it: the owner of a domain's target sees the target's jobs. */
export const ownedJob = Effect.fnUntraced(function* (text: string) {
  const { db } = yield* ShareProtectionModel
  const job = yield* findExisting("job", idText(JobId), text, (id) => findJob(db, id))
  const is_own = yield* isOfJob(yield* callerOf, job)
  return is_own ? job : yield* new NotFound({ detail: "No such job." })
})
