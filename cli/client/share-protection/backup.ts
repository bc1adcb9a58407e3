/** `almanac backups`: backups of shares. Source: document 2 §2, §4. */
import { fieldsOf } from "#cli/client/fields.ts"
import { boolean, type CommandGroup, choice, text } from "#cli/client/operation.ts"
import { BackupStatus } from "#schemas/share-protection/backup.ts"
import { BackupA, BackupB, NewBackupA, NewBackupB } from "#schemas/share-protection/views/backup.ts"

const resource = [BackupA, BackupB]

export const backups: CommandGroup = {
  name: "backups",
  operations: [
    {
      command: "list",
      alias: "ls",
      method: "GET",
      path: "/v1/backups",
      items: "backups",
      is_paged: true,
      what: "List the backups of the project, newest first",
      resource,
      example: "almanac backups list --share-id ID --status available",
      columns: ["id", "status", "bytes", "files", "created_at", "share_id", "policy_id"],
      query: [
        text("share_id", "Only backups of this share, by its ID"),
        text("target_id", "Only backups in this target, by ID or name"),
        text("target_bucket_id", "Only backups in this target, by ID or name (Shape B)"),
        text("policy_id", "Only backups of this policy, by ID or name"),
        choice("status", "Only backups in this state", BackupStatus.literals),
        boolean("include_expired", "Include expired backups"),
      ],
    },
    {
      command: "show",
      method: "GET",
      path: "/v1/backups/{id}",
      what: "Show one backup",
      resource,
    },
    {
      command: "create",
      method: "POST",
      path: "/v1/backups",
      created: "backup",
      has_job: true,
      what: "Back up a share now",
      resource,
      example: "almanac backups create --share-id ID --target-id ID --wait",
      body: fieldsOf(NewBackupA, NewBackupB),
    },
    {
      command: "delete",
      alias: "rm",
      method: "DELETE",
      path: "/v1/backups/{id}",
      what: "Delete a backup whose object lock has expired",
      done: "Backup deleted.",
    },
    {
      command: "undelete",
      method: "POST",
      path: "/v1/backups/{id}/undelete",
      what: "Recover a deleted backup, if its data still exists",
      resource,
      created: "backup",
      has_job: true,
    },
  ],
}
