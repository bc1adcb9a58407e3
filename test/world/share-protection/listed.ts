/** Sample data for everything that share protection lists, and every combination of filters. */
import { Effect } from "effect"
import type { BackupEvent } from "#events/share-protection/backup.ts"
import { listBackups } from "#projections/share-protection/backup.ts"
import { listJobs } from "#projections/share-protection/job.ts"
import type { Listed, Page } from "#projections/share-protection/listing.ts"
import { listPolicies } from "#projections/share-protection/policy.ts"
import { listRestores } from "#projections/share-protection/restore.ts"
import { listRollouts } from "#projections/share-protection/rollout.ts"
import { listTargets } from "#projections/share-protection/target.ts"
import { listTargetTemplates } from "#projections/share-protection/target-template.ts"
import { listWorkers } from "#projections/share-protection/worker.ts"
import { about } from "./job-samples.ts"
import { emptyModel } from "./read-model.ts"
import { backup, policy, restore, snapshot, template, uuid } from "./samples.ts"
import { created, completed as enrolled, failed } from "./target-samples.ts"

type Model = Effect.Success<typeof emptyModel>
export type Db = Model["db"]
export type Filter = Readonly<Record<string, string | boolean | undefined>>
export type Row = { readonly id: string }

const domains = ["north", "south"]
const projects = ["p0", "p1", "p2"]
const pick = (values: ReadonlyArray<string>, i: number) => values[i % values.length] ?? ""

const targets_count = 5
const targetId = (i: number) => uuid(100 + (i % targets_count))
const shareId = (i: number) => uuid(200 + i)
const templateId = (i: number) => uuid(300 + (i % 3))
const policyId = (i: number) => uuid(400 + i)
const backupId = (i: number) => uuid(1000 + i)

/** The events of the i-th backup after its request. */
const backupCourse = (i: number): ReadonlyArray<BackupEvent> => {
  const made: ReadonlyArray<BackupEvent> = [
    { type: "BackupStarted" },
    { type: "BackupCompleted", ...snapshot },
  ]
  if (i % 4 === 0) return [...made, { type: "BackupExpired" }]
  if (i % 4 === 1) return made
  return i % 4 === 2 ? [{ type: "BackupFailed", reason: "no" }] : []
}

export const rows_count = 60

/**
 * Fills a model with several resources of each kind, in several projects, domains, targets and
 * states.
 */
export const fill = Effect.fnUntraced(function* ({ tell }: Pick<Model, "tell">) {
  for (let i = 0; i < targets_count; i++) {
    const target = { ...created, project_id: pick(projects, i), domain_id: pick(domains, i) }
    const course = i === 0 ? [] : [i === 1 ? failed : enrolled]
    yield* tell(`target.${targetId(i)}`, i, { ...target, template_id: templateId(i) }, ...course)
  }
  for (let i = 0; i < 3; i++) {
    const made = { type: "TargetTemplateCreated", ...template, domain_id: pick(domains, i) }
    yield* tell(`target-template.${templateId(i)}`, 0, made)
    yield* tell(`rollout.${uuid(700 + i)}`, 0, {
      type: "RolloutCreated",
      image: `image-${i}`,
      domain_ids: domains,
    })
  }
  for (let i = 0; i < rows_count; i++) {
    const of = { project_id: pick(projects, i), share_id: shareId(i % 12), target_id: targetId(i) }
    const policy_id = i % 5 === 0 ? null : policyId(i % 12)
    const made = { ...backup, ...of, policy_id, job_id: uuid(3000 + i) }
    yield* tell(
      `backup.${backupId(i)}`,
      i,
      { type: "BackupRequested", ...made },
      ...backupCourse(i),
    )
    yield* tell(`restore.${uuid(2000 + i)}`, i, {
      type: "RestoreRequested",
      ...restore,
      ...of,
      backup_id: backupId(i % 7),
    })
    const resource = { resource_id: backupId(i % 7), backup_id: backupId(i % 7) }
    const assigned = { worker_id: "w", fence: 1 }
    yield* tell(
      `job.${uuid(3000 + i)}`,
      i,
      { type: "JobQueued", ...about, ...of, ...resource, project_id: i % 9 ? of.project_id : null },
      ...(i % 3 ? [{ type: "JobCancelled" }] : []),
      ...(i % 6
        ? []
        : [
            { type: "JobAssigned", ...assigned },
            { type: "JobStarted", ...assigned },
          ]),
    )
    yield* tell(`worker.w${100 + i}`, i, {
      type: "WorkerRegistered",
      project_id: "workers",
      domain_id: null,
      hostname: `h${i}`,
      image_version: `image-${i % 2}`,
      engine_version: "1",
      capacity_slots: 2,
    })
    if (i % 3 === 0) yield* tell(`worker.w${100 + i}`, i, { type: "WorkerDrainStarted" })
  }
  for (let i = 0; i < 12; i++) {
    const of = { project_id: pick(projects, i), target_id: targetId(i) }
    yield* tell(`policy.${shareId(i)}`, i, {
      type: "PolicyDefined",
      ...policy,
      ...of,
      id: policyId(i),
      enabled: i % 2 === 0,
    })
  }
})

export interface Listing {
  readonly list: (db: Db, filter: Filter, page: Page) => Effect.Effect<Listed<Row>>
  readonly order: "asc" | "desc"
  readonly count: number
  /** Values of each filter; any of them can be combined. */
  readonly filters: Readonly<Record<string, ReadonlyArray<string | boolean>>>
  readonly is?: (row: Row, filter: Filter) => boolean
}

const of_project = { project_id: ["p0", "p1", "nobody"] }

/** Casts a filter whose names are those of the listing's own filters. */
const any = <Own extends object>(filter: Filter) => filter as Own

export const equals = (row: object, filter: Filter) =>
  Object.entries(filter).every(
    ([name, value]) => value === undefined || Reflect.get(row, name) === value,
  )

export const listings: Readonly<Record<string, Listing>> = {
  targets: {
    list: (db, filter, page) => listTargets(db, any(filter), page),
    order: "asc",
    count: targets_count,
    filters: {
      ...of_project,
      status: ["pending", "error", "available"],
      domain_id: ["south"],
      template_id: [templateId(0)],
    },
  },
  templates: {
    list: (db, filter, page) => listTargetTemplates(db, any(filter), page),
    order: "asc",
    count: 3,
    filters: { domain_id: domains },
  },
  policies: {
    list: (db, filter, page) => listPolicies(db, any(filter), page),
    order: "asc",
    count: 12,
    filters: { ...of_project, share_id: [shareId(3)], target_id: [targetId(0)] },
  },
  backups: {
    list: (db, filter, page) => listBackups(db, any(filter), page),
    order: "desc",
    count: rows_count - rows_count / 4,
    filters: {
      ...of_project,
      share_id: [shareId(3), shareId(4)],
      target_id: [targetId(0)],
      policy_id: [policyId(1)],
      status: ["available", "expired", "error"],
      include_expired: [true, false],
    },
    is: (row, { include_expired, ...filter }) =>
      equals(row, filter) &&
      (include_expired === true ||
        filter.status === "expired" ||
        Reflect.get(row, "status") !== "expired"),
  },
  restores: {
    list: (db, filter, page) => listRestores(db, any(filter), page),
    order: "desc",
    count: rows_count,
    filters: { ...of_project, backup_id: [backupId(3)] },
  },
  jobs: {
    list: (db, filter, page) => listJobs(db, any(filter), page),
    order: "desc",
    count: rows_count,
    filters: {
      ...of_project,
      resource_id: [backupId(2)],
      target_id: [targetId(1)],
      state: ["queued", "error", "provisioning_network"],
    },
  },
  workers: {
    list: (db, filter, page) => listWorkers(db, any(filter), page),
    order: "asc",
    count: rows_count,
    filters: { image_version: ["image-0", "none"], state: ["ready", "draining", "dead"] },
  },
  rollouts: {
    list: (db, _, page) => listRollouts(db, page),
    order: "asc",
    count: 3,
    filters: {},
  },
}

/** Every combination of values, including omitted names. */
export const choices = (filters: Listing["filters"]): ReadonlyArray<Filter> =>
  Object.entries(filters).reduce<ReadonlyArray<Filter>>(
    (all, [name, values]) =>
      all.flatMap((filter) => [filter, ...values.map((value) => ({ ...filter, [name]: value }))]),
    [{}],
  )

export const filled = Effect.tap(emptyModel, fill)
