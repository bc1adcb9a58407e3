import { describe } from "@effect/vitest"
import { address } from "#actors/commands.ts"
import { Policy } from "#actors/share-protection/policy.ts"
import {
  adoptBackup,
  definePolicy,
  deleteBackup,
  expireBackups,
  requestBackup,
  requestRestore,
} from "#actors/share-protection/requests.ts"
import { TargetId } from "#schemas/share-protection/id.ts"
import { SkipTick } from "#schemas/share-protection/policy.ts"
import {
  backups,
  conflict,
  create,
  enroll,
  failed,
  full,
  jobs,
  ledger,
  limit,
  locked,
  made,
  not_found,
  policies,
  request,
  requestedBackup,
  scene,
  taken,
  targets,
  upgrade,
} from "../../world/share-protection/request-scenes.ts"
import {
  a_moment_before,
  adopted,
  at,
  backup_id,
  jobId,
  other_backup_id,
  policy,
  policy_id,
  project_id,
  restore,
  restore_id,
  share_id,
  snapshot,
  target_id,
  uuid,
} from "../../world/share-protection/samples.ts"

const next_job_id = jobId(3)
const elsewhere = TargetId.make(uuid(99))
const define = definePolicy(share_id, policy, limit)
const of_policy = { ...requestedBackup, policy_id }

describe("requesting a backup", () => {
  const whole = [
    `${policies} ShareBackupStarted`,
    `${targets} TargetBackupRegistered`,
    `${ledger} Reserved`,
    `${backups} BackupRequested`,
    `${jobs(requestedBackup.job_id)} JobQueued`,
  ]
  scene("starts it on its share, and queues a job", [create], request, whole)
  scene("of a policy does the same", [create, define], requestBackup(of_policy, limit), whole)
  scene(
    "at a tick does the same",
    [create, define],
    requestBackup({ ...of_policy, tick: at }, limit),
    whole,
  )
  const skip = SkipTick.make({ policy_id, tick: at, reason: "repository_locked" })
  scene(
    "at a past tick is refused by the share",
    [create, define, [address(Policy, share_id, skip)]],
    requestBackup({ ...of_policy, tick: at }, limit),
    conflict,
  )
  scene(
    "during another is refused by the share",
    [create, request],
    requestBackup({ ...requestedBackup, backup_id: other_backup_id, job_id: next_job_id }, limit),
    conflict,
  )
  scene(
    "of no policy is refused by the share",
    [create],
    requestBackup(of_policy, limit),
    not_found,
  )
  scene("is refused by a missing target", [], request, not_found)
  scene("is refused by the target's upgrade", [create, enroll, upgrade], request, locked)
  scene("is refused by the ledger", [create], requestBackup(requestedBackup, 0), full)
  scene(
    "again is refused by the backup",
    made(),
    requestBackup({ ...requestedBackup, job_id: next_job_id }, limit),
    conflict,
  )
  scene("is refused by the job", [create, taken(requestedBackup.job_id)], request, conflict)
})

const { engine_snapshot_id } = snapshot
const gone = { backup_id, engine_snapshot_id }
const going = { project_id, target_id, backups: [gone], job_id: next_job_id }
const other = { backup_id: other_backup_id, engine_snapshot_id }
const adopt = adoptBackup(other_backup_id, adopted, limit)

describe("expiring backups", () => {
  scene(
    "no longer counts them, and queues one job for their snapshots",
    [...made(), adopt],
    expireBackups({ ...going, backups: [gone, other] }),
    [
      `${backups} BackupExpired`,
      `backup.${other_backup_id} BackupExpired`,
      `${targets} TargetBackupsDeregistered`,
      `${ledger} Released`,
      `${jobs(next_job_id)} JobQueued`,
    ],
  )
  scene(
    "is refused by the one of them that is no longer available",
    [...made(), adopt, expireBackups({ ...going, backups: [other] })],
    expireBackups({ ...going, backups: [gone, other], job_id: jobId(4) }),
    conflict,
  )
  scene(
    "is refused by one with a running restore",
    [...made(), requestRestore(restore_id, { ...restore, job_id: jobId(4) })],
    expireBackups(going),
    conflict,
  )
  scene(
    "is rejected for a missing target",
    made(),
    expireBackups({ ...going, target_id: elsewhere }),
    not_found,
  )
  scene("is refused by the job", [...made(), taken(next_job_id)], expireBackups(going), conflict)
})

describe("deleting a backup", () => {
  const of = { project_id, target_id }
  const forget = { ...gone, job_id: next_job_id }
  const kept = { expired: false, forget }
  scene(
    "no longer counts it, and queues a job for its snapshot",
    made(),
    deleteBackup(backup_id, of, kept, at),
    [
      `${backups} BackupDeleted`,
      `${targets} TargetBackupsDeregistered`,
      `${ledger} Released`,
      `${jobs(next_job_id)} JobQueued`,
    ],
  )
  scene(
    "without a snapshot queues no job",
    failed,
    deleteBackup(backup_id, of, { expired: false }, at),
    [`${backups} BackupDeleted`, `${targets} TargetBackupsDeregistered`, `${ledger} Released`],
  )
  const remove = deleteBackup(backup_id, of, { expired: true }, at)
  scene("that expired counts nothing twice", [...made(), expireBackups(going)], remove, [
    `${backups} BackupDeleted`,
  ])
  scene(
    "that expired meanwhile is refused by the backup, and counts nothing twice",
    [...made(), expireBackups(going)],
    deleteBackup(backup_id, of, { expired: false, forget: { ...forget, job_id: jobId(4) } }, at),
    conflict,
  )
  scene("wrongly taken for expired is refused by the backup", made(), remove, conflict)
  scene(
    "whose objects are locked is refused by the backup",
    made({ protected_until: at }),
    deleteBackup(backup_id, of, kept, a_moment_before),
    conflict,
  )
  scene(
    "is rejected for a missing target",
    made(),
    deleteBackup(backup_id, { ...of, target_id: elsewhere }, kept, at),
    not_found,
  )
  scene(
    "is refused by the job",
    [...made(), taken(next_job_id)],
    deleteBackup(backup_id, of, kept, at),
    conflict,
  )
})

describe("adopting a backup", () => {
  scene("counts it like any other", [create, enroll], adopt, [
    `backup.${other_backup_id} BackupAdopted`,
    `${targets} TargetBackupRegistered`,
    `${ledger} Reserved`,
  ])
  scene("is refused by an existing record", [create, enroll, adopt], adopt, conflict)
  scene("is refused by the target", [], adopt, not_found)
  scene("is refused by the ledger", [create], adoptBackup(other_backup_id, adopted, 0), full)
})

describe("requesting a restore", () => {
  const ask = requestRestore(restore_id, { ...restore, job_id: next_job_id })
  scene("starts it on its backup, and queues a job", made(), ask, [
    `${backups} BackupRestoreStarted`,
    `restore.${restore_id} RestoreRequested`,
    `${jobs(next_job_id)} JobQueued`,
  ])
  scene("is refused by a missing backup", [create], ask, not_found)
  scene("is refused by a backup that is not available", failed, ask, conflict)
  scene("is refused by the target's upgrade", [...made(), upgrade], ask, locked)
  scene(
    "again is refused by the restore",
    [...made(), adopt, ask],
    requestRestore(restore_id, { ...restore, backup_id: other_backup_id, job_id: jobId(4) }),
    conflict,
  )
  scene("is refused by the job", [...made(), taken(next_job_id)], ask, conflict)
})
