/** `almanac templates`: templates for targets. Source: document 2 §2, Shape B. */
import { fieldsOf } from "#cli/client/fields.ts"
import type { CommandGroup } from "#cli/client/operation.ts"
import { TargetTemplate } from "#schemas/share-protection/target-template.ts"
import {
  NewTargetTemplate,
  TargetTemplateChanges,
} from "#schemas/share-protection/views/target-template.ts"

const columns = ["id", "name", "endpoint", "bucket_scheme", "region", "domain_id", "updated_at"]
const path = "/v1/target-templates"
const resource = [TargetTemplate]

export const templates: CommandGroup = {
  name: "templates",
  operations: [
    {
      command: "list",
      alias: "ls",
      method: "GET",
      path,
      items: "items",
      is_paged: true,
      columns,
      what: "List the templates of the domain",
      resource,
      for_operators: { path: "/v1/admin/target-templates", flag: "all-projects" },
    },
    { command: "show", method: "GET", path: `${path}/{id}`, what: "Show one template", resource },
    {
      command: "create",
      method: "POST",
      path,
      what: "Create a template; requires a domain owner",
      example:
        "almanac templates create --name shared --endpoint https://s3.example.org " +
        "--bucket-scheme shared",
      resource,
      body: fieldsOf(NewTargetTemplate),
    },
    {
      command: "update",
      method: "PATCH",
      path: `${path}/{id}`,
      what: "Change a template",
      example: "almanac templates update shared --keep-daily 14",
      resource,
      body: fieldsOf(TargetTemplateChanges),
    },
    {
      command: "delete",
      alias: "rm",
      method: "DELETE",
      path: `${path}/{id}`,
      done: "Template deleted.",
      what: "Delete a template that no target refers to",
    },
  ],
}
