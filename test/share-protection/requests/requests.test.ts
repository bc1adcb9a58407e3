import { describe } from "@effect/vitest"
import { address } from "#actors/commands.ts"
import { Job } from "#actors/share-protection/job.ts"
import { assignJob } from "#actors/share-protection/jobs/transitions.ts"
import {
  createTarget,
  definePolicy,
  deletePolicy,
  deleteTarget,
  requestBackup,
  restartEnrollment,
  startFormatUpgrade,
} from "#actors/share-protection/requests.ts"
import { Worker } from "#actors/share-protection/worker.ts"
import { TargetId } from "#schemas/share-protection/id.ts"
import { CancelJob } from "#schemas/share-protection/job.ts"
import { RegisterWorker } from "#schemas/share-protection/worker.ts"
import { worker_id } from "../../world/share-protection/job-samples.ts"
import {
  bucket,
  conflict,
  create,
  createTemplate,
  enroll,
  failEnrollment,
  full,
  jobs,
  leases,
  ledger,
  limit,
  locked,
  not_found,
  policies,
  requestedBackup,
  scene,
  shared_bucket,
  taken,
  targets,
  templates,
  upgrade,
} from "../../world/share-protection/request-scenes.ts"
import {
  domain_id,
  job_id,
  other_job_id,
  other_policy_id,
  policy,
  policy_id,
  project_id,
  share_id,
  target,
  target_id,
  template_id,
  uuid,
} from "../../world/share-protection/samples.ts"

const createBucket = createTarget(target_id, bucket, limit)
const of_project = { project_id, template_id: null }

describe("creating a target", () => {
  scene("counts it and queues its enrollment", [], create, [
    `${ledger} Reserved`,
    `${targets} TargetCreated`,
    `${jobs(job_id)} JobQueued`,
  ])
  scene("below a template registers it there", [createTemplate], createBucket, [
    `${ledger} Reserved`,
    `${templates} TemplateTargetRegistered`,
    `${targets} TargetCreated`,
    `${jobs(job_id)} JobQueued`,
  ])
  scene(
    "that projects share counts in no quota",
    [createTemplate],
    createTarget(target_id, shared_bucket, 0),
    [
      `${templates} TemplateTargetRegistered`,
      `${targets} TargetCreated`,
      `${jobs(job_id)} JobQueued`,
    ],
  )
  scene("is refused by the ledger", [], createTarget(target_id, target, 0), full)
  scene("is refused by the template", [], createBucket, not_found)
  const again = createTarget(target_id, { ...target, job_id: other_job_id }, limit)
  scene("is refused by the target", [create], again, conflict)
  scene("is refused by the job", [taken(job_id)], create, conflict)
})

describe("deleting a target", () => {
  scene(
    "closes its lease, no longer counts it, and cancels waiting jobs",
    [create],
    deleteTarget(target_id, of_project, [job_id]),
    [
      `${targets} TargetDeleted`,
      `${leases} LeaseClosed`,
      `${ledger} Released`,
      `${jobs(job_id)} JobCancelled`,
    ],
  )
  scene(
    "below a template deregisters it there",
    [createTemplate, createBucket],
    deleteTarget(target_id, { project_id, template_id }, []),
    [
      `${targets} TargetDeleted`,
      `${leases} LeaseClosed`,
      `${ledger} Released`,
      `${templates} TemplateTargetDeregistered`,
    ],
  )
  scene(
    "that projects share changes no ledger",
    [createTemplate, createTarget(target_id, shared_bucket, 0)],
    deleteTarget(target_id, { project_id: null, template_id }, []),
    [
      `${targets} TargetDeleted`,
      `${leases} LeaseClosed`,
      `${templates} TemplateTargetDeregistered`,
    ],
  )
  scene(
    "is refused by the target",
    [create, definePolicy(share_id, policy, limit)],
    deleteTarget(target_id, of_project, []),
    "svc.target_has_dependents",
  )
  const machine = {
    project_id,
    domain_id,
    hostname: "host-1",
    image_version: "image-1",
    engine_version: "0.18.0",
    capacity_slots: 1,
  }
  const enrollment = {
    job_id,
    resource_id: target_id,
    target_id,
    share_id: null,
    backup_id: null,
    job_type: "target_enroll" as const,
    project_id,
    hold: null,
  }
  scene(
    "is refused by the lease",
    [
      [...create, address(Worker, worker_id, RegisterWorker.make(machine))],
      assignJob(enrollment, { worker_id, fence: 1 }),
    ],
    deleteTarget(target_id, of_project, []),
    locked,
  )
  const elsewhere = deleteTarget(target_id, { project_id, template_id }, [])
  scene("is refused by the template", [create], elsewhere, not_found)
  scene(
    "is refused by a job that has ended",
    [create, [address(Job, job_id, CancelJob.make({}))]],
    deleteTarget(target_id, of_project, [job_id]),
    conflict,
  )
})

describe("enrolling a target again", () => {
  const restart = restartEnrollment(target_id, project_id, other_job_id)
  scene("queues a job after an error", [create, failEnrollment], restart, [
    `${targets} TargetEnrollmentRestarted`,
    `${jobs(other_job_id)} JobQueued`,
  ])
  scene("is refused by the target", [create], restart, conflict)
  scene("is refused by the job", [create, failEnrollment, taken(other_job_id)], restart, conflict)
})

describe("upgrading a target's format", () => {
  const start = startFormatUpgrade(target_id, project_id, other_job_id)
  scene("queues a job", [create, enroll], start, [
    `${targets} TargetFormatUpgradeStarted`,
    `${jobs(other_job_id)} JobQueued`,
  ])
  scene("is refused by the target", [create, enroll, upgrade], start, locked)
  scene("is refused by the job", [create, enroll, taken(other_job_id)], start, conflict)
})

const define = definePolicy(share_id, policy, limit)
const by_template = { ...policy, target_id: null, target_template_id: template_id }
const defineByTemplate = definePolicy(share_id, by_template, limit)

describe("defining a policy", () => {
  scene("registers it on its target and counts it", [create], define, [
    `${policies} PolicyDefined`,
    `${targets} TargetPolicyRegistered`,
    `${ledger} Reserved`,
  ])
  scene("registers it on its template and counts it", [createTemplate], defineByTemplate, [
    `${policies} PolicyDefined`,
    `${templates} TemplatePolicyRegistered`,
    `${ledger} Reserved`,
  ])
  const another = definePolicy(share_id, { ...policy, id: other_policy_id }, limit)
  scene("is refused by the share that has one", [create, define], another, conflict)
  scene("is refused by the target", [], define, not_found)
  scene("is refused by the template", [], defineByTemplate, not_found)
  scene("is refused by the ledger", [create], definePolicy(share_id, policy, 0), full)
})

describe("deleting a policy", () => {
  scene(
    "deregisters it on its target and in its ledger",
    [create, define],
    deletePolicy(share_id, policy),
    [`${policies} PolicyDeleted`, `${targets} TargetPolicyDeregistered`, `${ledger} Released`],
  )
  scene(
    "deregisters it on its template and in its ledger",
    [createTemplate, defineByTemplate],
    deletePolicy(share_id, by_template),
    [`${policies} PolicyDeleted`, `${templates} TemplatePolicyDeregistered`, `${ledger} Released`],
  )
  scene(
    "is refused by a share with another policy",
    [create, define],
    deletePolicy(share_id, { ...policy, id: other_policy_id }),
    not_found,
  )
  scene(
    "is refused during a backup of it",
    [create, define, requestBackup({ ...requestedBackup, policy_id }, limit)],
    deletePolicy(share_id, policy),
    "svc.policy_has_inflight_backup",
  )
  const elsewhere = TargetId.make(uuid(99))
  scene(
    "is refused by the target",
    [create, define],
    deletePolicy(share_id, { ...policy, target_id: elsewhere }),
    not_found,
  )
  scene(
    "is refused by the template",
    [create, define],
    deletePolicy(share_id, { ...policy, target_template_id: template_id }),
    not_found,
  )
})
