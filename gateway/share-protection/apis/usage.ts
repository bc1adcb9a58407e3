/** Usage and coverage over HTTP. Source: document 2 §2, §4; DECISIONS, coverage and usage. */
import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, OpenApi } from "effect/http-api"
import { Needs } from "#gateway/access.ts"
import { for_operators, for_tenants } from "#gateway/share-protection/apis/permission.ts"
import { ProjectId } from "#schemas/share-protection/id.ts"
import { rejections } from "#schemas/share-protection/rejection.ts"
import { Count } from "#schemas/share-protection/text.ts"
import { as_of_query, filterBy } from "#schemas/share-protection/views/page.ts"
import { CoverageEntry, Usage } from "#schemas/share-protection/views/usage.ts"

const about = {
  usage: {
    summary: "Get usage",
    description:
      "Returns what the token's project protects and stores, now or as of an earlier time. " +
      for_tenants,
  },
  coverage: {
    summary: "List coverage",
    description:
      "Returns how each share is protected, ordered by share id, in one page. The list has all " +
      "shares of the share service, so unprotected ones are included, and shares that a policy " +
      "or a backup still references. With `as_of`, it has only the latter. " +
      for_operators,
  },
}

const Coverage = Schema.Struct({
  coverage: Schema.Array(CoverageEntry).annotateKey({ description: "All shares." }),
  pagination: Schema.Struct({
    count: Count.annotateKey({ description: "Number of shares." }),
  }).annotateKey({ description: "The size of the report." }),
}).annotate({ description: "The coverage report." })

export const UsageGroup = HttpApiGroup.make("usage")
  .annotate(OpenApi.Description, "Usage: what a project protects and stores.")
  .add(
    HttpApiEndpoint.get("get", "/v1/usage", {
      query: as_of_query,
      success: Usage,
      error: rejections(),
    })
      .annotateMerge(OpenApi.annotations(about.usage))
      .annotate(Needs, { rule: "share-protection:usage:get" }),
  )

export const CoverageGroup = HttpApiGroup.make("coverage")
  .annotate(OpenApi.Description, "Coverage: which shares are protected, for operators.")
  .add(
    HttpApiEndpoint.get("list", "/v1/admin/coverage", {
      query: {
        ...as_of_query,
        project_id: filterBy(ProjectId, "Return only shares of this project."),
      },
      success: Coverage,
      error: rejections(),
    })
      .annotateMerge(OpenApi.annotations(about.coverage))
      .annotate(Needs, { rule: "share-protection:admin:coverage:list" }),
  )
