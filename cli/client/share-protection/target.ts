/** `almanac targets`: backup buckets, in both shapes. Source: document 2 §2, §4. */
import { fieldsOf } from "#cli/client/fields.ts"
import { type CommandGroup, choice, text } from "#cli/client/operation.ts"
import {
  NewTargetA,
  NewTargetB,
  TargetChangesA,
  TargetChangesB,
} from "#schemas/share-protection/views/target.ts"

const as_of = text("as_of", "As it was then (2026-11-20T12:00:00Z)")
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
      what: "The targets of the project",
      columns,
      query: [status, as_of],
      for_operators: {
        path: "/v1/admin/targets",
        flag: "all-projects",
        query: [text("project_id", "Only this project's (with --all-projects)")],
      },
    },
    {
      command: "show",
      method: "GET",
      path: "/v1/targets/{id}",
      query: [as_of],
      what: "One target",
    },
    {
      command: "create",
      method: "POST",
      path: "/v1/targets",
      created: "target",
      has_job: true,
      what: "Register a bucket; its enrollment is a job",
      example:
        "almanac targets create --name nightly --endpoint https://s3.example.org --bucket b1 " +
        "--trust-id ID --access-key HREF --secret-key HREF --wait",
      body: fieldsOf(NewTargetA, NewTargetB),
    },
    {
      command: "update",
      method: "PATCH",
      path: "/v1/targets/{id}",
      what: "Change a target; one that lacked something is enrolled",
      body: fieldsOf(TargetChangesA, TargetChangesB),
    },
    {
      command: "delete",
      alias: "rm",
      method: "DELETE",
      path: "/v1/targets/{id}",
      what: "Forget a target; its bucket stays as it is",
      done: "deleted",
    },
    {
      command: "preflight",
      method: "GET",
      path: "/v1/targets/{id}/preflight",
      what: "Check the bucket now",
    },
    {
      command: "enroll",
      method: "POST",
      path: "/v1/targets/{id}/enroll",
      created: "target",
      what: "Enroll it again, after an error",
      has_job: true,
    },
    {
      command: "upgrade-format",
      method: "POST",
      created: "target",
      has_job: true,
      path: "/v1/admin/targets/{id}/repo-format-upgrade",
      what: "Upgrade the format of its repository; needs svc_admin",
    },
  ],
}
