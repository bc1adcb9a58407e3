/** `almanac templates`: what buckets are registered against. Source: document 2 §2, Shape B. */
import { choice, integer, type Noun, needed, text } from "#cli/client/operation.ts"

const columns = ["id", "name", "endpoint", "bucket_scheme", "region", "domain_id", "updated_at"]
const path = "/v1/target-templates"

const retention = (["last", "daily", "weekly", "monthly"] as const).map((which) =>
  integer(`default_retention.keep_${which}`, `Backups to keep by default, ${which}`, {
    flag: `keep-${which}`,
  }),
)

export const templates: Noun = {
  name: "templates",
  operations: [
    {
      verb: "list",
      alias: "ls",
      method: "GET",
      path,
      items: "items",
      is_paged: true,
      columns,
      what: "The templates of the domain",
      for_operators: { path: "/v1/admin/target-templates", flag: "all-projects" },
    },
    { verb: "show", method: "GET", path: `${path}/{id}`, what: "One template" },
    {
      verb: "create",
      method: "POST",
      path,
      what: "Make a template; needs a domain owner",
      body: [
        text("name", "Its name", needed),
        text("endpoint", "Address of the S3 server", needed),
        choice("bucket_scheme", "Whose a bucket is", ["shared", "per_project"], needed),
        text("region", "Region of its buckets"),
        text("provider", "Who runs the S3 server"),
        choice("addressing_mode", "How buckets are addressed", ["path", "virtual"]),
        text("ca_cert_ref", "Href of the certificate authority of the endpoint"),
        text("domain_id", "The domain, where the token is of none"),
        ...retention,
      ],
    },
    {
      verb: "update",
      method: "PATCH",
      path: `${path}/{id}`,
      what: "Change a template",
      body: [text("name", "Its name"), ...retention],
    },
    {
      verb: "delete",
      alias: "rm",
      method: "DELETE",
      path: `${path}/{id}`,
      done: "deleted",
      what: "Delete a template that no target refers to",
    },
  ],
}
