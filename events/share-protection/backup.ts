/** Events of a backup. Stream: share-protection.backup.<id>. */
import { Schema, Struct } from "effect"
import { Instant } from "#schemas/instant.ts"
import { message } from "#schemas/message.ts"
import {
  AdoptBackup,
  completed_fields,
  request_fields,
  snapshot_fields,
  tested_fields,
} from "#schemas/share-protection/backup.ts"
import { RestoreId, ShareId } from "#schemas/share-protection/id.ts"
import { Reason } from "#schemas/share-protection/text.ts"

export const BackupRequested = message("BackupRequested", request_fields)
export const BackupQueued = message("BackupQueued", {})
export const BackupStarted = message("BackupStarted", {})
export const BackupCompleted = message("BackupCompleted", completed_fields)
export const BackupFailed = message("BackupFailed", { reason: Reason })
/** A new attempt: it waits for a worker again. */
export const BackupRetried = message("BackupRetried", {})
/** Its snapshot is forgotten; the record remains, and cannot be restored. */
export const BackupExpired = message("BackupExpired", {})
/** `expired` is whether it had already expired. */
export const BackupDeleted = message("BackupDeleted", { at: Instant, expired: Schema.Boolean })
export const BackupRestoreStarted = message("BackupRestoreStarted", { restore_id: RestoreId })
export const BackupRestoreFinished = message("BackupRestoreFinished", { restore_id: RestoreId })
/** A snapshot of the repository that had no record now has one. */
export const BackupAdopted = message("BackupAdopted", Struct.omit(AdoptBackup.fields, ["type"]))
/** Its snapshot is missing from the repository, though this service did not remove it. */
export const BackupLost = message("BackupLost", { reason: Reason })
/** A job checks whether the snapshot of an expired backup is recoverable. */
export const BackupUndeleteStarted = message("BackupUndeleteStarted", {})
/** It is available again; from here on only its tenant can delete it. */
export const BackupUndeleted = message("BackupUndeleted", {
  protected_until: snapshot_fields.protected_until,
})
/** It stays expired. */
export const BackupUndeleteFailed = message("BackupUndeleteFailed", { reason: Reason })

/** The tested backup and its share: the share's newest backup at the time. */
const tested = { share_id: ShareId, taken_at: Instant }

/** Some of its files were restored, and matched the originals. */
export const BackupRestoreTested = message("BackupRestoreTested", { ...tested, ...tested_fields })
export const BackupRestoreTestFailed = message("BackupRestoreTestFailed", {
  ...tested,
  reason: Reason,
})

export const BackupEvent = Schema.Union([
  BackupRequested,
  BackupQueued,
  BackupStarted,
  BackupCompleted,
  BackupFailed,
  BackupRetried,
  BackupExpired,
  BackupDeleted,
  BackupRestoreStarted,
  BackupRestoreFinished,
  BackupAdopted,
  BackupLost,
  BackupUndeleteStarted,
  BackupUndeleted,
  BackupUndeleteFailed,
  BackupRestoreTested,
  BackupRestoreTestFailed,
]).pipe(Schema.toTaggedUnion("type"))
export type BackupEvent = typeof BackupEvent.Type
