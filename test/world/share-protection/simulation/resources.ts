/** Records of the tenants' resources: backups, restores, targets and policies. */
import { Struct } from "effect"
import type { BackupEvent } from "#events/share-protection/backup.ts"
import type { PolicyEvent } from "#events/share-protection/policy.ts"
import type { RestoreEvent } from "#events/share-protection/restore.ts"
import type { TargetEvent } from "#events/share-protection/target.ts"
import type { BackupRecord, Happened, Law, Records } from "./records.ts"

const open = new Set(["creating", "queued", "running"])

export const takeBackup = (records: Records, law: Law, happened: Happened<BackupEvent>) => {
  const { backups, shares } = records
  const { id, event, position } = happened
  if (event.type === "BackupRequested") {
    law(!backups.has(id), "a backup is requested once")
    const backup = Struct.omit(event, ["type"])
    const made = {
      engine_snapshot_id: null,
      taken_at: "",
      kept: false,
      restores: new Set<string>(),
    }
    backups.set(id, { ...backup, ...made, status: "creating" })
    return
  }
  const backup = backups.get(id)
  if (backup === undefined) return law(false, `${event.type} of a missing backup`)
  moveBackup(backup, law, event)
  const share = shares.get(backup.share_id)
  if (share !== undefined) share.changed_at ??= position
}

const moveBackup = (
  backup: BackupRecord,
  law: Law,
  event: Exclude<BackupEvent, { readonly type: "BackupRequested" }>,
) => {
  const { status, restores } = backup
  switch (event.type) {
    case "BackupQueued":
      law(status === "creating", "a backup is admitted once")
      backup.status = "queued"
      return
    case "BackupStarted":
      law(status === "creating" || status === "queued", "a backup that waits begins")
      backup.status = "running"
      return
    case "BackupCompleted": {
      law(status === "running", "a backup that runs is made")
      const { engine_snapshot_id, taken_at } = event
      Object.assign(backup, { status: "available", engine_snapshot_id, taken_at })
      return
    }
    case "BackupFailed":
      law(open.has(status), "only what is under way fails")
      backup.status = "error"
      return
    case "BackupRetried":
      law(status === "error", "only a failed backup is tried again")
      backup.status = "queued"
      return
    case "BackupExpired":
      law(status === "available" && restores.size === 0, "what is restored does not expire")
      backup.status = "expired"
      return
    case "BackupDeleted": {
      const may = ["available", "error", "expired"].includes(status) && restores.size === 0
      law(may && event.expired === (status === "expired"), "only what has ended is deleted")
      backup.status = "deleted"
      return
    }
    case "BackupRestoreStarted":
      law(status === "available", "only an available backup is restored")
      restores.add(event.restore_id)
      return
    case "BackupRestoreFinished":
      law(restores.delete(event.restore_id), "a restore ends once")
      return
    case "BackupLost":
      law(status === "available", "only what is there is lost")
      backup.status = "error"
      return
    case "BackupUndeleteStarted":
    case "BackupUndeleted":
    case "BackupUndeleteFailed":
      return bringBack(backup, law, event.type)
    case "BackupRestoreTested":
    case "BackupRestoreTestFailed":
      law(status === "available", "only what is available is tested")
      law(event.taken_at === backup.taken_at, "a test names the backup that it tried")
      return
    case "BackupAdopted":
      return law(false, "nothing is there to be adopted")
  }
}

const bringBack = (
  backup: BackupRecord,
  law: Law,
  type: "BackupUndeleteStarted" | "BackupUndeleted" | "BackupUndeleteFailed",
) => {
  const is_start = type === "BackupUndeleteStarted"
  const before = is_start ? "expired" : "undeleting"
  law(backup.status === before, `${type} of a backup that is ${backup.status}`)
  if (type === "BackupUndeleted") Object.assign(backup, { status: "available", kept: true })
  else backup.status = is_start ? "undeleting" : "expired"
}

export const takeRestore = ({ restores }: Records, law: Law, happened: Happened<RestoreEvent>) => {
  const { id, event } = happened
  if (event.type === "RestoreRequested") {
    law(!restores.has(id), "a restore is requested once")
    const restore = Struct.omit(event, ["type"])
    restores.set(id, { ...restore, status: "pending" })
    return
  }
  const restore = restores.get(id)
  if (restore === undefined) return law(false, `${event.type} of a missing restore`)
  const allowed: Record<typeof event.type, readonly [ReadonlyArray<string>, string]> = {
    RestoreQueued: [["pending"], "queued"],
    RestoreStarted: [["pending", "queued"], "running"],
    RestoreCompleted: [["running"], "available"],
    RestoreFailed: [["pending", "queued", "running"], "error"],
    RestoreRetried: [["error"], "queued"],
  }
  const [before, after] = allowed[event.type]
  law(before.includes(restore.status), `${event.type} of a restore that is ${restore.status}`)
  restore.status = after
}

export const takeTarget = ({ targets }: Records, law: Law, happened: Happened<TargetEvent>) => {
  const { id, event } = happened
  if (event.type === "TargetCreated") {
    law(!targets.has(id), "a target is made once")
    const target = Struct.omit(event, ["type"])
    const begin = { status: "pending", format_job_id: null, policies: 0, backups: 0 }
    targets.set(id, { ...target, ...begin, protected_until: "" })
    return
  }
  const target = targets.get(id)
  if (target === undefined) return law(false, `${event.type} of a missing target`)
  law(target.status !== "deleted", "nothing happens to a target that is gone")
  switch (event.type) {
    case "TargetUpdated": {
      Object.assign(target, Struct.omit(event, ["type"]))
      return
    }
    case "TargetEnrolled":
    case "TargetEnrollmentFailed":
      law(target.status === "pending" && event.job_id === target.job_id, "its enrollment ends it")
      target.status = event.type === "TargetEnrolled" ? "available" : "error"
      return
    case "TargetEnrollmentRestarted":
      law(target.status === "error", "only a failed enrollment begins again")
      Object.assign(target, { status: "pending", job_id: event.job_id })
      return
    case "TargetFormatUpgradeStarted":
      law(target.status === "available" && target.format_job_id === null, "one upgrade at a time")
      target.format_job_id = event.job_id
      return
    case "TargetFormatUpgraded":
    case "TargetFormatUpgradeFailed":
      law(target.format_job_id === event.job_id, "an upgrade ends once")
      target.format_job_id = null
      return
    case "TargetPolicyRegistered":
      target.policies++
      return
    case "TargetPolicyDeregistered":
      target.policies--
      return
    case "TargetBackupRegistered":
      target.backups++
      return law(target.format_job_id === null, "no backup begins while the format is upgraded")
    case "TargetBackupsDeregistered":
      target.backups -= event.count
      return
    case "TargetDeleted":
      law(target.policies + target.backups === 0, "what is referenced is not deleted")
      target.status = "deleted"
      return
    case "TargetLocksExtended":
      law(event.protected_until > target.protected_until, "locks only get longer")
      target.protected_until = event.protected_until
      return
    case "TargetPreflighted":
    case "TargetUsageMeasured":
  }
}

export const takePolicy = ({ shares }: Records, law: Law, happened: Happened<PolicyEvent>) => {
  const { id, event, position } = happened
  const fresh = { policy: null, backup_id: null, last_tick: null, expendable: [] }
  const share = shares.get(id) ?? { ...fresh, changed_at: null }
  shares.set(id, share)
  share.changed_at ??= position
  switch (event.type) {
    case "PolicyDefined": {
      law(share.policy === null, "a share has one policy")
      const policy = Struct.omit(event, ["type"])
      Object.assign(share, { policy, last_tick: null })
      return
    }
    case "PolicyUpdated": {
      const is_its = share.policy?.id === event.policy_id
      if (share.policy === null || !is_its) return law(false, "only the share's policy changes")
      share.policy = { ...share.policy, ...Struct.omit(event, ["type", "policy_id"]) }
      return
    }
    case "PolicyDeleted":
      law(share.policy?.id === event.policy_id, "only the share's policy goes")
      share.policy = null
      return
    case "ShareBackupStarted": {
      const { tick, backup_id } = event
      law(share.backup_id === null, "a share has one backup under way")
      law(tick === null || tick > (share.last_tick ?? ""), "a tick is taken once")
      Object.assign(share, { backup_id, last_tick: tick ?? share.last_tick })
      return
    }
    case "ShareBackupFinished":
      law(share.backup_id === event.backup_id, "a backup of a share ends once")
      share.backup_id = null
      return
    case "TickSkipped":
      law(event.tick > (share.last_tick ?? ""), "a tick is skipped once")
      share.last_tick = event.tick
  }
}
