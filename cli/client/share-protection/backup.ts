/** `almanac backups`: backups of shares. Source: document 2 §2, §4. */
import { fieldsOf } from "#cli/client/fields.ts"
import { boolean, type CommandGroup, choice, text } from "#cli/client/operation.ts"
import { BackupStatus } from "#schemas/share-protection/backup.ts"
import { NewBackupA, NewBackupB } from "#schemas/share-protection/views/backup.ts"

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
      what: "The backups of the project, newest first",
      columns: ["id", "status", "bytes", "files", "created_at", "share_id", "policy_id"],
      query: [
        text("share_id", "Only this share's"),
        text("target_id", "Only those in this target"),
        text("target_bucket_id", "Shape B: only those in this target"),
        text("policy_id", "Only those of this policy"),
        choice("status", "Only backups in this state", BackupStatus.literals),
        boolean("include_expired", "Expired ones too"),
      ],
    },
    { command: "show", method: "GET", path: "/v1/backups/{id}", what: "One backup" },
    {
      command: "create",
      method: "POST",
      path: "/v1/backups",
      created: "backup",
      has_job: true,
      what: "Back a share up now",
      example: "almanac backups create --share-id ID --target-id ID --wait",
      body: fieldsOf(NewBackupA, NewBackupB),
    },
    {
      command: "delete",
      alias: "rm",
      method: "DELETE",
      path: "/v1/backups/{id}",
      what: "Delete a backup that no lock holds any more",
      done: "deleted",
    },
    {
      command: "undelete",
      method: "POST",
      path: "/v1/backups/{id}/undelete",
      what: "Bring back what is still recoverable",
      created: "backup",
      has_job: true,
    },
  ],
}
