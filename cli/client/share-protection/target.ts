/** `almanac targets`: buckets that backups go into, in both shapes. Source: document 2 §2, §4. */
import { fieldsOf } from "#cli/client/fields.ts"
import { choice, type Noun, text } from "#cli/client/operation.ts"
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

export const targets: Noun = {
  name: "targets",
  operations: [
    {
      verb: "list",
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
      verb: "show",
      method: "GET",
      path: "/v1/targets/{id}",
      query: [as_of],
      what: "One target",
    },
    {
      verb: "create",
      method: "POST",
      path: "/v1/targets",
      made: "target",
      has_job: true,
      what: "Register a bucket; its enrollment is a job",
      example:
        "almanac targets create --name nightly --endpoint https://s3.example.org --bucket b1 " +
        "--trust-id ID --access-key HREF --secret-key HREF --wait",
      body: fieldsOf(NewTargetA, NewTargetB),
    },
    {
      verb: "update",
      method: "PATCH",
      path: "/v1/targets/{id}",
      what: "Change a target; one that lacked something is enrolled",
      body: fieldsOf(TargetChangesA, TargetChangesB),
    },
    {
      verb: "delete",
      alias: "rm",
      method: "DELETE",
      path: "/v1/targets/{id}",
      what: "Forget a target; its bucket stays as it is",
      done: "deleted",
    },
    {
      verb: "preflight",
      method: "GET",
      path: "/v1/targets/{id}/preflight",
      what: "Check the bucket now",
    },
    {
      verb: "enroll",
      method: "POST",
      path: "/v1/targets/{id}/enroll",
      made: "target",
      what: "Enroll it again, after an error",
      has_job: true,
    },
    {
      verb: "upgrade-format",
      method: "POST",
      made: "target",
      has_job: true,
      path: "/v1/admin/targets/{id}/repo-format-upgrade",
      what: "Upgrade the format of its repository; needs svc_admin",
    },
  ],
}
