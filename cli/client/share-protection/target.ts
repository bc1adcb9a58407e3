/** `almanac targets`: backup buckets, in both shapes. Source: document 2 §2, §4. */
import { fieldsOf } from "#cli/client/fields.ts"
import { type CommandGroup, choice, text } from "#cli/client/operation.ts"
import {
  NewTargetA,
  NewTargetB,
  TargetA,
  TargetB,
  TargetChangesA,
  TargetChangesB,
} from "#schemas/share-protection/views/target.ts"

const as_of = text("as_of", "State at this time (2026-11-20T12:00:00Z)")
const resource = [TargetA, TargetB]
const statuses = ["pending", "enrolling", "available", "error"]
const status = choice("status", "Only targets in this state", statuses)
const columns = ["id", "name", "status", "bucket", "bucket_name", "endpoint", "updated_at"]

export const targets: CommandGroup = {
  name: "targets",
  operations: [
    {
      command: "list",
      alias: "ls",
      method: "GET",
      path: "/v1/targets",
      items: "targets",
      is_paged: true,
      what: "List the targets of the project",
      resource,
      columns,
      query: [status, as_of],
      for_operators: {
        path: "/v1/admin/targets",
        flag: "all-projects",
        query: [text("project_id", "Only targets of this project (with --all-projects)")],
      },
    },
    {
      command: "show",
      method: "GET",
      path: "/v1/targets/{id}",
      query: [as_of],
      what: "Show one target",
      resource,
    },
    {
      command: "create",
      method: "POST",
      path: "/v1/targets",
      created: "target",
      has_job: true,
      what: "Register a bucket as a target; a job enrolls it",
      resource,
      example:
        "almanac targets create --name nightly --endpoint https://s3.example.org --bucket b1 " +
        "--trust-id ID --access-key HREF --secret-key HREF --wait",
      body: fieldsOf(NewTargetA, NewTargetB),
    },
    {
      command: "update",
      method: "PATCH",
      path: "/v1/targets/{id}",
      example: "almanac targets update nightly --trust-id ID",
      what: "Change a target; it is enrolled once no required member is missing",
      resource,
      body: fieldsOf(TargetChangesA, TargetChangesB),
    },
    {
      command: "delete",
      alias: "rm",
      method: "DELETE",
      path: "/v1/targets/{id}",
      what: "Delete a target; its bucket is not changed",
      done: "Target deleted.",
    },
    {
      command: "preflight",
      method: "GET",
      path: "/v1/targets/{id}/preflight",
      what: "Check the bucket of a target now",
    },
    {
      command: "enroll",
      method: "POST",
      path: "/v1/targets/{id}/enroll",
      created: "target",
      what: "Enroll a target again after an error",
      resource,
      has_job: true,
    },
    {
      command: "upgrade-format",
      method: "POST",
      created: "target",
      has_job: true,
      path: "/v1/admin/targets/{id}/repo-format-upgrade",
      what: "Upgrade the repository format of a target; requires svc_admin",
      resource,
    },
  ],
}
