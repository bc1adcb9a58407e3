/** Sample data for tests of share protection: one project, its share, its bucket. */
import {
  BackupId,
  DomainId,
  JobId,
  PolicyId,
  ProjectId,
  RestoreId,
  ShareId,
  TargetId,
  TargetTemplateId,
} from "#schemas/share-protection/id.ts"

/** A UUIDv7 that readers can easily recognize. */
export const uuid = (number: number) =>
  `00000000-0000-7000-8000-${String(number).padStart(12, "0")}`

export const project_id = ProjectId.make("project-1")
export const other_project_id = ProjectId.make("project-2")
export const domain_id = DomainId.make("domain-1")
export const share_id = ShareId.make(uuid(1))
export const target_id = TargetId.make(uuid(2))
export const template_id = TargetTemplateId.make(uuid(3))
export const policy_id = PolicyId.make(uuid(4))
export const other_policy_id = PolicyId.make(uuid(5))
export const backup_id = BackupId.make(uuid(6))
export const other_backup_id = BackupId.make(uuid(7))
export const restore_id = RestoreId.make(uuid(8))
export const other_restore_id = RestoreId.make(uuid(9))
export const new_share_id = ShareId.make(uuid(10))
export const jobId = (number: number) => JobId.make(uuid(100 + number))
export const job_id = jobId(1)
export const other_job_id = jobId(2)

export const at = "2026-11-20T12:00:00.000Z"
export const a_moment_before = "2026-11-20T11:59:59.999Z"
export const later = "2026-11-20T13:00:00.000Z"

export const secretRef = (number: number) => `http://vault:9311/v1/secrets/${uuid(1000 + number)}`

export const retention = { keep_last: 3, keep_daily: 7 }

export const template = {
  domain_id,
  name: "Domain's S3",
  endpoint: "https://s3.example.org",
  region: "north",
  provider: "ceph",
  bucket_scheme: "per_project",
  addressing_mode: "path",
  ca_cert_ref: null,
  default_retention: retention,
} as const

export const target = {
  name: "Bucket of project 1",
  endpoint: "https://s3.example.org",
  bucket: "backups-of-project-1",
  trust_id: "8a1fd1e3c0d94a4f8d1f2f0f5d1e9b77",
  vault_secret_map: { access_key: secretRef(1), secret_key: secretRef(2) },
  ca_cert_ref: null,
  addressing_mode: "path",
  region: null,
  project_id,
  domain_id: null,
  template_id: null,
  registered_by: "user-1",
  job_id,
} as const

export const capabilities = {
  object_lock: true,
  versioning: true,
  lifecycle: true,
  addressing_mode: "path",
  checked_at: at,
} as const

export const enrolled = {
  repository_password_ref: secretRef(3),
  capabilities,
  format: 2,
  engine_profile: "restic 0.18.0",
} as const

export const usage_stats = {
  stored_bytes: 4096,
  noncurrent_bytes: 512,
  objects: 7,
  measured_at: at,
}

export const policy = {
  id: policy_id,
  project_id,
  target_id,
  target_template_id: null,
  name: "Nightly",
  schedule: "0 2 * * *",
  timezone: "UTC",
  retention,
  enabled: true,
  include_patterns: [],
  exclude_patterns: ["*.tmp"],
  max_retries: 2,
}

const of_backup = { project_id, share_id, target_id, policy_id }

export const backup = { ...of_backup, job_id, crash_consistent_wanted: null }

export const snapshot = {
  engine_snapshot_id: "f".repeat(64),
  taken_at: at,
  crash_consistent: true,
  partial: false,
  bytes: 1000,
  stored_bytes: 400,
  files: 10,
  protected_until: null,
}

export const adopted = { ...of_backup, ...snapshot }

export const restore = {
  project_id,
  backup_id,
  share_id,
  target_id,
  mode: "new_share",
  sub_path: null,
  force: false,
  dry_run: false,
  plan_hash: null,
  job_id,
} as const

export const restored = { new_share_id, files: 10, bytes: 1000, plan: null }

export const plan = {
  hash: "a".repeat(64),
  created: 1,
  updated: 1,
  deleted: 1,
  unchanged: 7,
  actions: [
    { action: "created", path: "/a" },
    { action: "updated", path: "/b" },
    { action: "deleted", path: "/c" },
  ],
} as const

/** The string of this length whose JSON is longest, if any character is allowed. */
export const longest = (chars: number) => "\u0000".repeat(chars)
/** The string whose JSON is longest without control characters. */
export const longestName = (chars = 255) => "\u20ac".repeat(chars)
/** A URL of the maximum length, plus this number of characters. */
export const longestUrl = (more = 0, path = "") => {
  const scheme = "https://"
  return `${scheme}${"h".repeat(1024 + more - scheme.length - path.length)}${path}`
}
/** A secret's href of the maximum length. */
export const longestRef = (more = 0) => longestUrl(more, `/v1/secrets/${uuid(1)}`)
export const longest_project_id = ProjectId.make("p".repeat(64))
export const longest_domain_id = DomainId.make("d".repeat(64))
