/** `almanac templates`: templates for targets. Source: document 2 §2, Shape B. */
import { fieldsOf } from "#cli/client/fields.ts"
import type { CommandGroup } from "#cli/client/operation.ts"
import {
  NewTargetTemplate,
  TargetTemplateChanges,
} from "#schemas/share-protection/views/target-template.ts"

const columns = ["id", "name", "endpoint", "bucket_scheme", "region", "domain_id", "updated_at"]
const path = "/v1/target-templates"

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
      what: "The templates of the domain",
      for_operators: { path: "/v1/admin/target-templates", flag: "all-projects" },
    },
    { command: "show", method: "GET", path: `${path}/{id}`, what: "One template" },
    {
      command: "create",
      method: "POST",
      path,
      what: "Make a template; needs a domain owner",
      body: fieldsOf(NewTargetTemplate),
    },
    {
      command: "update",
      method: "PATCH",
      path: `${path}/{id}`,
      what: "Change a template",
      body: fieldsOf(TargetTemplateChanges),
    },
    {
      command: "delete",
      alias: "rm",
      method: "DELETE",
      path: `${path}/{id}`,
      done: "deleted",
      what: "Delete a template that no target refers to",
    },
  ],
}
