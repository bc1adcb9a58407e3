/** `almanac restores`: restores of backups into shares. Source: document 2 §2, §4. */
import { fieldsOf } from "#cli/client/fields.ts"
import { type CommandGroup, text } from "#cli/client/operation.ts"
import { NewRestore } from "#schemas/share-protection/views/restore.ts"

export const restores: CommandGroup = {
  name: "restores",
  operations: [
    {
      command: "list",
      alias: "ls",
      method: "GET",
      path: "/v1/restores",
      items: "restores",
      is_paged: true,
      what: "The restores of the project",
      columns: ["id", "status", "mode", "bytes", "created_at", "backup_id", "new_share_id"],
      query: [text("backup_id", "Only those of this backup")],
    },
    { command: "show", method: "GET", path: "/v1/restores/{id}", what: "One restore" },
    {
      command: "create",
      method: "POST",
      path: "/v1/restores",
      created: "restore",
      has_job: true,
      what: "Restore a backup into a new share, or in place",
      example: "almanac restores create --backup-id ID --sub-path /reports --wait",
      body: fieldsOf(NewRestore),
    },
  ],
}
