/** `almanac restores`: restores of backups into shares. Source: document 2 §2, §4. */
import { fieldsOf } from "#cli/client/fields.ts"
import { type CommandGroup, text } from "#cli/client/operation.ts"
import { NewRestore, Restore } from "#schemas/share-protection/views/restore.ts"

const resource = [Restore]

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
      what: "List the restores of the project",
      resource,
      columns: ["id", "status", "mode", "bytes", "created_at", "backup_id", "new_share_id"],
      query: [text("backup_id", "Only restores of this backup, by its ID")],
    },
    {
      command: "show",
      method: "GET",
      path: "/v1/restores/{id}",
      what: "Show one restore",
      resource,
    },
    {
      command: "create",
      method: "POST",
      path: "/v1/restores",
      created: "restore",
      has_job: true,
      what: "Restore a backup into a new share, or in place",
      resource,
      example: "almanac restores create --backup-id ID --sub-path /reports --wait",
      body: fieldsOf(NewRestore),
    },
  ],
}
