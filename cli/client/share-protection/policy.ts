/** `almanac policies`: schedules and retention of backups. Source: document 2 §2, §4. */
import { fieldsOf } from "#cli/client/fields.ts"
import { type CommandGroup, text } from "#cli/client/operation.ts"
import {
  NewPolicyA,
  NewPolicyB,
  NewRetentionPreview,
  PolicyChanges,
} from "#schemas/share-protection/views/policy.ts"

const as_of = text("as_of", "As it was then (2026-11-20T12:00:00Z)")

export const policies: CommandGroup = {
  name: "policies",
  operations: [
    {
      command: "list",
      alias: "ls",
      method: "GET",
      path: "/v1/policies",
      items: "policies",
      is_paged: true,
      what: "The policies of the project",
      columns: ["id", "name", "enabled", "schedule", "share_id", "last_tick", "timezone"],
      query: [
        text("share_id", "Only this share's"),
        text("target_id", "Only those of this target"),
        as_of,
      ],
    },
    {
      command: "show",
      method: "GET",
      path: "/v1/policies/{id}",
      query: [as_of],
      what: "One policy",
    },
    {
      command: "create",
      method: "POST",
      path: "/v1/policies",
      what: "Bind a share to a target, with a schedule",
      example:
        "almanac policies create --name nightly --share-id ID --target-id ID " +
        "--schedule '15 3 * * *' --keep-daily 7",
      body: fieldsOf(NewPolicyA, NewPolicyB),
    },
    {
      command: "update",
      method: "PATCH",
      path: "/v1/policies/{id}",
      what: "Change a policy",
      body: fieldsOf(PolicyChanges),
    },
    {
      command: "delete",
      alias: "rm",
      method: "DELETE",
      path: "/v1/policies/{id}",
      what: "Delete a policy; its backups stay",
      done: "deleted",
    },
    {
      command: "preview",
      method: "POST",
      path: "/v1/policies/{id}/retention-preview",
      base_path: "/v1/policies/{id}",
      what: "What the retention would keep and expire with these rules; nothing is done",
      example: "almanac policies preview ID --keep-daily 3",
      body: fieldsOf(NewRetentionPreview),
    },
  ],
}
