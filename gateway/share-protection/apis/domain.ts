/** Domains' own settings over HTTP. Source: document 2 §4 Admin endpoints; DECISIONS, domains. */
import { HttpApiEndpoint, HttpApiGroup, HttpApiSchema, OpenApi } from "effect/http-api"
import { Needs } from "#gateway/access.ts"
import { for_operators } from "#gateway/share-protection/apis/permission.ts"
import { Domain, DomainSettings } from "#schemas/share-protection/domain.ts"
import { DomainId } from "#schemas/share-protection/id.ts"
import { NotFound, rejections, when } from "#schemas/share-protection/rejection.ts"

const params = {
  domain_id: DomainId.annotate({
    description: "ID of the domain in the identity service: 1 to 64 letters, digits, `_` and `-`.",
  }),
}

const about = {
  get: {
    summary: "Get a domain's settings",
    description:
      "Returns the domain's own settings. A setting that is null or absent has the value of the " +
      `configuration. ${for_operators}`,
  },
  update: {
    summary: "Update a domain's settings",
    description:
      "Changes the settings in the request; null resets one to the configuration's value. " +
      "`quotas` are replaced as a whole. The change applies at the next reconciliation, every " +
      "`conductor.reconciliation_interval` seconds (300); until then `pending` is true. " +
      "`min_workers` must not exceed `max_workers`, and the image must have the property " +
      `\`svc_worker_image=1\`. ${for_operators}`,
  },
}

const unconfigured = when(NotFound, "`svc.not_found`: the domain has no settings of its own.")

export const DomainGroup = HttpApiGroup.make("domains")
  .annotate(
    OpenApi.Description,
    "Domains: workers and quotas that differ from the configuration, for operators.",
  )
  .add(
    HttpApiEndpoint.get("get", "/v1/admin/domains/:domain_id", {
      params,
      success: Domain,
      error: rejections(unconfigured),
    })
      .annotateMerge(OpenApi.annotations(about.get))
      .annotate(Needs, { rule: "share-protection:admin:domains:get" }),
    HttpApiEndpoint.patch("update", "/v1/admin/domains/:domain_id", {
      params,
      payload: DomainSettings,
      success: Domain.pipe(HttpApiSchema.status(202)),
      error: rejections(unconfigured),
    })
      .annotateMerge(OpenApi.annotations(about.update))
      .annotate(Needs, { rule: "share-protection:admin:domains:update" }),
  )
