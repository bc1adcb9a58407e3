/** Target templates over HTTP, in Shape B. Source: document 2 §4; DECISIONS, template. */
import { Schema } from "effect"
import { HttpApi, HttpApiEndpoint, HttpApiGroup, HttpApiSchema, OpenApi } from "effect/http-api"
import { Needs } from "#gateway/access.ts"
import { BodyLimit } from "#gateway/limits.ts"
import { Examples } from "#gateway/reference.ts"
import { for_domain_owners, for_operators } from "#gateway/share-protection/apis/permission.ts"
import { patchOf } from "#gateway/share-protection/patch.ts"
import examples_b from "#gateway/share-protection/shapes/examples-b.json" with { type: "json" }
import { body_bytes_max, noContent, strict } from "#gateway/share-protection/shapes/shape.ts"
import {
  Conflict,
  FieldImmutable,
  NotFound,
  rejections,
  TargetHasDependents,
  when,
} from "#schemas/share-protection/rejection.ts"
import { TargetTemplate } from "#schemas/share-protection/target-template.ts"
import { Pagination, page_query, pathId } from "#schemas/share-protection/views/page.ts"
import {
  NewTargetTemplate,
  TargetTemplateChanges,
} from "#schemas/share-protection/views/target-template.ts"

const params = pathId("target template")
const list = Schema.Struct({
  items: Schema.Array(TargetTemplate).annotateKey({ description: "The templates of this page." }),
  pagination: Pagination,
}).annotate({ description: "A page of target templates." })

const for_readers =
  "Requires the role `member` or `admin` in a project of the domain, or `svc_domain_owner` " +
  "with a " +
  "token that is scoped to the domain."

const about = {
  list: {
    summary: "List target templates",
    description:
      "Returns the templates of the token's domain, oldest first, one page at a time. " +
      for_readers,
  },
  create: {
    summary: "Create a target template",
    description:
      "Creates a template: an S3 service against which the domain owner registers buckets, and " +
      "which policies of the domain's projects use. `bucket_scheme` cannot be changed later. " +
      `\`addressing_mode\` is \`path\` by default. ${for_domain_owners}`,
  },
  get: { summary: "Get a target template", description: `Returns a template. ${for_readers}` },
  update: {
    summary: "Update a target template",
    description:
      "Changes the name or the default retention. Existing policies keep their retention. " +
      for_domain_owners,
  },
  delete: {
    summary: "Delete a target template",
    description:
      "Deletes a template that no target and no policy references. The buckets are kept. " +
      for_domain_owners,
  },
}

const about_admin = {
  summary: "List the target templates of all domains",
  description:
    "Returns the templates of all domains, oldest first, one page at a time. " + for_operators,
}

const referenced = when(
  TargetHasDependents,
  "`svc.target_has_dependents`: targets or policies reference the template.",
)

const templates = HttpApiGroup.make("target-templates")
  .annotate(
    OpenApi.Description,
    "Target templates: S3 services that a domain provides for backups (Shape B).",
  )
  .add(
    HttpApiEndpoint.get("list", "/v1/target-templates", {
      query: page_query,
      success: list,
      error: rejections(),
    })
      .annotateMerge(OpenApi.annotations(about.list))
      .annotate(Needs, { rule: "share-protection:target_templates:list" }),
    HttpApiEndpoint.post("create", "/v1/target-templates", {
      payload: NewTargetTemplate,
      success: TargetTemplate.pipe(HttpApiSchema.status(201)),
      error: rejections(NotFound, Conflict),
    })
      .annotateMerge(OpenApi.annotations(about.create))
      .annotate(Needs, { rule: "share-protection:target_templates:create" }),
    HttpApiEndpoint.get("get", "/v1/target-templates/:id", {
      params,
      success: TargetTemplate,
      error: rejections(NotFound),
    })
      .annotateMerge(OpenApi.annotations(about.get))
      .annotate(Needs, { rule: "share-protection:target_templates:get" }),
    HttpApiEndpoint.patch("update", "/v1/target-templates/:id", {
      params,
      payload: patchOf(TargetTemplateChanges, TargetTemplate, (changes) => changes),
      success: TargetTemplate,
      error: rejections(NotFound, FieldImmutable),
    })
      .annotateMerge(OpenApi.annotations(about.update))
      .annotate(Needs, { rule: "share-protection:target_templates:update" }),
    HttpApiEndpoint.delete("delete", "/v1/target-templates/:id", {
      params,
      success: noContent("The template was deleted."),
      error: rejections(NotFound, referenced),
    })
      .annotateMerge(OpenApi.annotations(about.delete))
      .annotate(Needs, { rule: "share-protection:target_templates:delete" }),
  )

const adminTemplates = HttpApiGroup.make("admin-target-templates")
  .annotate(OpenApi.Description, "Target templates of all domains, for operators.")
  .add(
    HttpApiEndpoint.get("list", "/v1/admin/target-templates", {
      query: page_query,
      success: list,
      error: rejections(),
    })
      .annotateMerge(OpenApi.annotations(about_admin))
      .annotate(Needs, { rule: "share-protection:admin:target_templates:list" }),
  )

/** The endpoints that only Shape B has. */
export const TargetTemplateApi = HttpApi.make("share-protection/target-template")
  .annotate(Examples, examples_b)
  .add(templates, adminTemplates)
  .annotate(HttpApi.PayloadParseOptions, strict)
  .annotate(BodyLimit, () => body_bytes_max)
