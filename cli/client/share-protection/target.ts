/** `almanac targets`: buckets that backups go into, in both shapes. Source: document 2 §2, §4. */
import { choice, type Field, list, type Noun, text } from "#cli/client/operation.ts"

const as_of = text("as_of", "As it was then (2026-11-20T12:00:00Z)")
const statuses = ["pending", "enrolling", "available", "error"]
const status = choice("status", "Only targets in this state", statuses)
const columns = ["id", "name", "status", "bucket", "bucket_name", "endpoint", "updated_at"]

const keys: ReadonlyArray<Field> = [
  text("vault_secret_map.access_key", "Shape A: href of the access key", { flag: "access-key" }),
  text("vault_secret_map.secret_key", "Shape A: href of the secret key", { flag: "secret-key" }),
  list("vault_secret_refs", "Shape A: both hrefs, access key first", { flag: "secret-ref" }),
  text("s3_access_key_ref", "Shape B: href of the access key"),
  text("s3_secret_key_ref", "Shape B: href of the secret key"),
]

const settable: ReadonlyArray<Field> = [
  text("name", "Its name"),
  text("endpoint", "Shape A: address of the S3 server, https://s3.example.org"),
  text("bucket", "Shape A: the bucket, made with object lock"),
  text("trust_id", "Trust by which jobs read the secrets"),
  ...keys,
  text("ca_cert_ref", "Href of the certificate authority of the endpoint"),
  choice("addressing_mode", "How the bucket is addressed", ["path", "virtual"]),
  text("region", "Region of the bucket"),
]

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
      body: [
        ...settable,
        text("bucket_name", "Shape B: the bucket"),
        text("template_id", "Shape B: the template that it is registered against"),
        text("project_id", "Shape B: the project that it is for"),
      ],
    },
    {
      verb: "update",
      method: "PATCH",
      path: "/v1/targets/{id}",
      what: "Change a target; one that lacked something is enrolled",
      body: [...settable, text("engine_key_trust_id", "Shape B: trust of the engine's key")],
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
