/** Target templates over HTTP, in Shape B. Source: document 2 §4; DECISIONS, template. */
import { Schema } from "effect"
import { HttpApi, HttpApiEndpoint, HttpApiGroup, HttpApiSchema, OpenApi } from "effect/http-api"
import { Needs } from "#gateway/access.ts"
import { BodyLimit } from "#gateway/limits.ts"
import { patchOf } from "#gateway/share-protection/patch.ts"
import { body_bytes_max, strict } from "#gateway/share-protection/shapes/shape.ts"
import {
  Conflict,
  FieldImmutable,
  NotFound,
  rejections,
  TargetHasDependents,
} from "#schemas/share-protection/rejection.ts"
import { TargetTemplate } from "#schemas/share-protection/target-template.ts"
import { Pagination, page_query } from "#schemas/share-protection/views/page.ts"
import {
  NewTargetTemplate,
  TargetTemplateChanges,
} from "#schemas/share-protection/views/target-template.ts"

const params = { id: Schema.String }
const list = Schema.Struct({ items: Schema.Array(TargetTemplate), pagination: Pagination })

const templates = HttpApiGroup.make("target-templates")
  .annotate(OpenApi.Description, "Target templates: where a domain's buckets are.")
  .add(
    HttpApiEndpoint.get("list", "/v1/target-templates", {
      query: page_query,
      success: list,
      error: rejections(),
    })
      .annotate(OpenApi.Summary, "List the target templates")
      .annotate(Needs, { rule: "share-protection:target_templates:list" }),
    HttpApiEndpoint.post("create", "/v1/target-templates", {
      payload: NewTargetTemplate,
      success: TargetTemplate.pipe(HttpApiSchema.status(201)),
      error: rejections(NotFound, Conflict),
    })
      .annotate(OpenApi.Summary, "Create a target template")
      .annotate(Needs, { rule: "share-protection:target_templates:create" }),
    HttpApiEndpoint.get("get", "/v1/target-templates/:id", {
      params,
      success: TargetTemplate,
      error: rejections(NotFound),
    })
      .annotate(OpenApi.Summary, "Read a target template")
      .annotate(Needs, { rule: "share-protection:target_templates:get" }),
    HttpApiEndpoint.patch("update", "/v1/target-templates/:id", {
      params,
      payload: patchOf(TargetTemplateChanges, TargetTemplate, (changes) => changes),
      success: TargetTemplate,
      error: rejections(NotFound, FieldImmutable),
    })
      .annotate(OpenApi.Summary, "Change a target template")
      .annotate(Needs, { rule: "share-protection:target_templates:update" }),
    HttpApiEndpoint.delete("delete", "/v1/target-templates/:id", {
      params,
      error: rejections(NotFound, TargetHasDependents),
    })
      .annotate(OpenApi.Summary, "Delete a target template")
      .annotate(Needs, { rule: "share-protection:target_templates:delete" }),
  )

const adminTemplates = HttpApiGroup.make("admin-target-templates")
  .annotate(OpenApi.Description, "Target templates of all domains.")
  .add(
    HttpApiEndpoint.get("list", "/v1/admin/target-templates", {
      query: page_query,
      success: list,
      error: rejections(),
    })
      .annotate(OpenApi.Summary, "List the target templates of all domains")
      .annotate(Needs, { rule: "share-protection:admin:target_templates:list" }),
  )

/** The endpoints that only Shape B has. */
export const TargetTemplateApi = HttpApi.make("share-protection/target-template")
  .add(templates, adminTemplates)
  .annotate(HttpApi.PayloadParseOptions, strict)
  .annotate(BodyLimit, () => body_bytes_max)
