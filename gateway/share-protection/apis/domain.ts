/** Domains' own settings over HTTP. Source: document 2 §4 Admin endpoints; DECISIONS, domains. */
import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, HttpApiSchema, OpenApi } from "effect/http-api"
import { Needs } from "#gateway/access.ts"
import { Domain, domain_changes } from "#schemas/share-protection/domain.ts"
import { DomainId } from "#schemas/share-protection/id.ts"
import { NotFound, rejections } from "#schemas/share-protection/rejection.ts"

const params = { domain_id: DomainId }

export const DomainGroup = HttpApiGroup.make("domains")
  .annotate(OpenApi.Description, "Domains: settings of their own.")
  .add(
    HttpApiEndpoint.get("get", "/v1/admin/domains/:domain_id", {
      params,
      success: Domain,
      error: rejections(NotFound),
    })
      .annotate(OpenApi.Summary, "Read the settings of a domain")
      .annotate(Needs, { rule: "share-protection:admin:domains:get" }),
    HttpApiEndpoint.patch("update", "/v1/admin/domains/:domain_id", {
      params,
      payload: Schema.Struct(domain_changes),
      success: Domain.pipe(HttpApiSchema.status(202)),
      error: rejections(NotFound),
    })
      .annotate(OpenApi.Summary, "Change the settings of a domain")
      .annotate(Needs, { rule: "share-protection:admin:domains:update" }),
  )
