/** Orders as workers receive them: one of each type, and the largest possible ones. */
import { EngineSnapshotId, unread_bytes_max } from "#schemas/share-protection/backup.ts"
import { BackupId } from "#schemas/share-protection/id.ts"
import { forgotten_max } from "#schemas/share-protection/job.ts"
import type { JobOrder } from "#schemas/share-protection/job-order.ts"
import { hold } from "./job-samples.ts"
import {
  backup_id,
  job_id,
  longest_project_id,
  longestRef,
  longestUrl,
  policy_id,
  project_id,
  restore_id,
  secretRef,
  share_id,
  target,
  target_id,
  uuid,
} from "./samples.ts"

const { endpoint, bucket, region, addressing_mode, ca_cert_ref, trust_id, vault_secret_map } =
  target

const about = {
  job_id,
  attempt: 1,
  ...hold,
  target_id,
  target: {
    endpoint,
    bucket,
    region,
    addressing_mode,
    ca_cert_ref,
    trust_id,
    vault_secret_map,
  },
}
const enrolled = { ...about, repository_password_ref: secretRef(3) }
const of_target = { resource_id: target_id, project_id }
const engine_snapshot_id = EngineSnapshotId.make("f".repeat(64))

export const backupOrder = {
  job_type: "backup",
  ...enrolled,
  project_id,
  resource_id: backup_id,
  backup_id,
  share_id,
  policy_id,
  crash_consistent_wanted: null,
  include_patterns: [],
  exclude_patterns: ["*.tmp"],
} as const satisfies JobOrder

export const restoreOrder = {
  job_type: "restore",
  ...enrolled,
  project_id,
  resource_id: restore_id,
  backup_id,
  share_id,
  engine_snapshot_id,
  mode: "new_share",
  sub_path: null,
  dry_run: false,
  plan_hash: null,
} as const satisfies JobOrder

export const enrollmentOrder = {
  job_type: "target_enroll",
  ...about,
  ...of_target,
  former_password_refs: [secretRef(4)],
} as const satisfies JobOrder

export const retentionOrder = {
  job_type: "retention",
  ...enrolled,
  ...of_target,
  forget: [{ backup_id, engine_snapshot_id }],
} as const satisfies JobOrder

const maintenanceOrder = {
  job_type: "maintenance",
  ...enrolled,
  ...of_target,
} as const satisfies JobOrder

const upgradeOrder = {
  job_type: "repo_format_upgrade",
  ...enrolled,
  ...of_target,
} as const satisfies JobOrder

const of_backup = { project_id, resource_id: backup_id, backup_id, share_id, engine_snapshot_id }

const undeleteOrder = {
  job_type: "undelete",
  ...enrolled,
  ...of_backup,
} as const satisfies JobOrder

const restoreTestOrder = {
  job_type: "restore_test",
  ...enrolled,
  ...of_backup,
} as const satisfies JobOrder

export const orders = [
  backupOrder,
  restoreOrder,
  enrollmentOrder,
  retentionOrder,
  maintenanceOrder,
  upgradeOrder,
  undeleteOrder,
  restoreTestOrder,
] as const satisfies ReadonlyArray<JobOrder>

const longest_target = {
  ...about.target,
  endpoint: longestUrl(),
  ca_cert_ref: longestRef(),
  trust_id: "t".repeat(64),
  bucket: "b".repeat(63),
  region: "\u20ac".repeat(255),
  vault_secret_map: { access_key: longestRef(), secret_key: longestRef() },
}
const longest_about = { target: longest_target, repository_password_ref: longestRef() }

/** Patterns of the maximum total size that a policy permits. */
const longest_patterns = ["p".repeat(4092)]

/** The largest order of each type with fields of variable length. */
export const largestOrders: ReadonlyArray<JobOrder> = [
  {
    ...backupOrder,
    ...longest_about,
    project_id: longest_project_id,
    include_patterns: longest_patterns,
    exclude_patterns: longest_patterns,
  },
  {
    ...restoreOrder,
    ...longest_about,
    sub_path: `/${"\u20ac".repeat(1365)}`,
    unread: Array.from({ length: 2 }, () => `/${"\u0001".repeat(unread_bytes_max / 12 - 8)}`),
  },
  {
    ...retentionOrder,
    ...longest_about,
    project_id: longest_project_id,
    forget: Array.from({ length: forgotten_max }, (_, n) => ({
      backup_id: BackupId.make(uuid(n)),
      engine_snapshot_id,
    })),
  },
]
