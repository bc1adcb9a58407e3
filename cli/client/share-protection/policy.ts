/** `almanac policies`: schedules and retention of backups. Source: document 2 §2, §4. */
import { fieldsOf } from "#cli/client/fields.ts"
import { type CommandGroup, text } from "#cli/client/operation.ts"
import {
  NewPolicyA,
  NewPolicyB,
  NewRetentionPreview,
  PolicyA,
  PolicyB,
  PolicyChanges,
} from "#schemas/share-protection/views/policy.ts"

const as_of = text("as_of", "State at this time (2026-11-20T12:00:00Z)")
const resource = [PolicyA, PolicyB]

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
      what: "List the policies of the project",
      resource,
      columns: ["id", "name", "enabled", "schedule", "share_id", "last_tick", "timezone"],
      query: [
        text("share_id", "Only policies of this share, by its ID"),
        text("target_id", "Only policies of this target, by ID or name"),
        as_of,
      ],
    },
    {
      command: "show",
      method: "GET",
      path: "/v1/policies/{id}",
      query: [as_of],
      what: "Show one policy",
      resource,
    },
    {
      command: "create",
      method: "POST",
      path: "/v1/policies",
      what: "Create a policy: back up a share to a target on a schedule",
      resource,
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
      resource,
      example: "almanac policies update ID --keep-daily 14",
      body: fieldsOf(PolicyChanges),
    },
    {
      command: "delete",
      alias: "rm",
      method: "DELETE",
      path: "/v1/policies/{id}",
      what: "Delete a policy; its backups are kept",
      done: "Policy deleted.",
    },
    {
      command: "preview",
      method: "POST",
      path: "/v1/policies/{id}/retention-preview",
      base_path: "/v1/policies/{id}",
      what: "List what these retention rules would keep and expire; changes nothing",
      example: "almanac policies preview ID --keep-daily 3",
      body: fieldsOf(NewRetentionPreview),
    },
  ],
}
