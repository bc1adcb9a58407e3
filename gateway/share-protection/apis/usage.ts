/** Usage and coverage over HTTP. Source: document 2 §2, §4; DECISIONS, coverage and usage. */
import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, OpenApi } from "effect/http-api"
import { Needs } from "#gateway/access.ts"
import { ProjectId } from "#schemas/share-protection/id.ts"
import { rejections } from "#schemas/share-protection/rejection.ts"
import { Count } from "#schemas/share-protection/text.ts"
import { as_of_query } from "#schemas/share-protection/views/page.ts"
import { CoverageEntry, Usage } from "#schemas/share-protection/views/usage.ts"

export const UsageGroup = HttpApiGroup.make("usage")
  .annotate(OpenApi.Description, "Usage: what a project stores.")
  .add(
    HttpApiEndpoint.get("get", "/v1/usage", {
      query: as_of_query,
      success: Usage,
      error: rejections(),
    })
      .annotate(OpenApi.Summary, "Read the project's usage")
      .annotate(Needs, { rule: "share-protection:usage:get" }),
  )

export const CoverageGroup = HttpApiGroup.make("coverage")
  .annotate(OpenApi.Description, "Coverage: which shares are protected.")
  .add(
    HttpApiEndpoint.get("list", "/v1/admin/coverage", {
      query: { ...as_of_query, project_id: Schema.optionalKey(ProjectId) },
      success: Schema.Struct({
        coverage: Schema.Array(CoverageEntry),
        pagination: Schema.Struct({ count: Count }),
      }),
      error: rejections(),
    })
      .annotate(OpenApi.Summary, "Read the coverage report")
      .annotate(Needs, { rule: "share-protection:admin:coverage:list" }),
  )
