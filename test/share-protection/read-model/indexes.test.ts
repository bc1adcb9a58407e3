/** Query plans of pages: an index finds each page in order, without a sort. */
import { assert, describe, it } from "@effect/vitest"
import type { Effect } from "effect"
import type { Kysely } from "kysely"
import { PolicyUpdated } from "#events/share-protection/policy.ts"
import { TargetUpdated } from "#events/share-protection/target.ts"
import { writesOf } from "#projections/projection.ts"
import { listBackups } from "#projections/share-protection/backup.ts"
import { blueprint, type ShareProtectionTables } from "#projections/share-protection/blueprint.ts"
import { listJobs } from "#projections/share-protection/job.ts"
import type { Listed, Page } from "#projections/share-protection/listing.ts"
import { listPolicies } from "#projections/share-protection/policy.ts"
import { listRestores } from "#projections/share-protection/restore.ts"
import { listTargets } from "#projections/share-protection/target.ts"
import { listTargetTemplates } from "#projections/share-protection/target-template.ts"
import { listWorkers } from "#projections/share-protection/worker.ts"
import type { Message } from "#schemas/message.ts"
import {
  BackupId,
  DomainId,
  PolicyId,
  ProjectId,
  ShareId,
  TargetId,
  TargetTemplateId,
} from "#schemas/share-protection/id.ts"
import { detailsOf, emptyDatabase, planOf } from "../../world/query-plan.ts"
import { recorded } from "../../world/share-protection/read-model.ts"
import { at, uuid } from "../../world/share-protection/samples.ts"

type Db = Kysely<ShareProtectionTables>

const page: Page = { limit: 1000, marker: uuid(1) }
const id = uuid(2)
const project_id = ProjectId.make("p")
const share_id = ShareId.make(id)
const target_id = TargetId.make(id)
const policy_id = PolicyId.make(id)
const domain_id = DomainId.make("d")
const template_id = TargetTemplateId.make(id)

const backup_id = BackupId.make(id)
const state = "error"
const status = "error"

/** The index that serves each listing. */
type Case = readonly [index: string, list: (db: Db) => Effect.Effect<Listed<unknown>>]

const cases: Readonly<Record<string, ReadonlyArray<Case>>> = {
  jobs: [
    ["autoindex_share_protection_job_1", (db) => listJobs(db, {}, page)],
    ["job_project_id", (db) => listJobs(db, { project_id }, page)],
    ["job_resource_id", (db) => listJobs(db, { resource_id: id }, page)],
    ["job_resource_id", (db) => listJobs(db, { project_id, target_id, resource_id: id }, page)],
    ["job_target_id", (db) => listJobs(db, { target_id }, page)],
    ["job_target_id", (db) => listJobs(db, { project_id, target_id }, page)],
    ["job_target_id_state", (db) => listJobs(db, { target_id, state }, page)],
    ["job_project_id_state", (db) => listJobs(db, { project_id, state }, page)],
    ["job_state", (db) => listJobs(db, { state }, page)],
    ["job_job_type", (db) => listJobs(db, { job_type: "backup" }, page)],
  ],
  backups: [
    ["autoindex_share_protection_backup_1", (db) => listBackups(db, {}, page)],
    ["backup_project_id_usual", (db) => listBackups(db, { project_id }, page)],
    ["backup_project_id_usual", (db) => listBackups(db, { project_id, status }, page)],
    ["backup_project_id", (db) => listBackups(db, { project_id, include_expired: true }, page)],
    ["backup_project_id", (db) => listBackups(db, { project_id, status: "expired" }, page)],
    ["backup_share_id_usual", (db) => listBackups(db, { project_id, share_id }, page)],
    ["backup_policy_id_usual", (db) => listBackups(db, { project_id, policy_id }, page)],
    ["backup_target_id_usual", (db) => listBackups(db, { project_id, target_id }, page)],
    [
      "backup_target_id",
      (db) => listBackups(db, { project_id, target_id, include_expired: true }, page),
    ],
  ],
  restores: [
    ["restore_project_id", (db) => listRestores(db, { project_id }, page)],
    ["restore_backup_id", (db) => listRestores(db, { project_id, backup_id }, page)],
  ],
  targets: [
    ["target_project_id", (db) => listTargets(db, { project_id }, page)],
    ["target_domain_id", (db) => listTargets(db, { domain_id }, page)],
    ["target_status", (db) => listTargets(db, { status: "error" }, page)],
    ["target_template_id", (db) => listTargets(db, { template_id, project_id }, page)],
    ["target_history_project_id_id", (db) => listTargets(db, { project_id }, page, at)],
    ["target_history_id", (db) => listTargets(db, {}, page, at)],
  ],
  templates: [["target_template_domain_id", (db) => listTargetTemplates(db, { domain_id }, page)]],
  policies: [
    ["policy_project_id", (db) => listPolicies(db, { project_id }, page)],
    ["policy_share_id", (db) => listPolicies(db, { project_id, share_id }, page)],
    ["policy_target_id", (db) => listPolicies(db, { project_id, target_id }, page)],
    ["policy_history_project_id_id", (db) => listPolicies(db, { project_id }, page, at)],
    ["policy_history_id", (db) => listPolicies(db, {}, page, at)],
  ],
  workers: [
    ["worker_image_version", (db) => listWorkers(db, { image_version: "a" }, page)],
    [
      "worker_image_version_state",
      (db) => listWorkers(db, { image_version: "a", state: "ready" }, page),
    ],
    ["worker_state", (db) => listWorkers(db, { state: "ready" }, page)],
  ],
}

describe("a page", () => {
  for (const [what, pages] of Object.entries(cases)) {
    it(`of ${what} is found by the index that is worth most, in its order`, async () => {
      for (const [index, list] of pages) {
        const plan = await planOf(blueprint, list)
        assert.match(plan, new RegExp(`INDEX (sqlite_|share_protection_)${index} \\(`))
        assert.notInclude(plan, "B-TREE")
      }
    })
  }
})

describe("a version of a resource", () => {
  const changes: ReadonlyArray<readonly [stream: string, event: Message]> = [
    [`target.${id}`, TargetUpdated.make({ name: "renamed" })],
    [`policy.${id}`, PolicyUpdated.make({ policy_id, name: "renamed" })],
  ]
  it.each(changes)(
    "of %s begins and ends without a look at each of the others",
    (stream, event) => {
      const database = emptyDatabase(blueprint)
      const writes = [...writesOf(blueprint.projections, recorded(1, stream, at, [event]))].flat()
      const versions = writes.filter(({ sql }) => /^(update|delete from) "\w+_history"/.test(sql))
      const plans = versions.map((write) => detailsOf(database, write))
      database.close()
      assert.isAtLeast(plans.length, 2)
      for (const [first] of plans)
        assert.match(first ?? "", /_version \(\w+=\? AND valid_from[=>]\?\)/)
    },
  )
})
