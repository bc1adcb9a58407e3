/** `/v1/admin/trusts`: what the verbs `trust create` and `trust revoke` ask a running instance. */
import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, OpenApi } from "effect/http-api"
import { Needs } from "#gateway/access.ts"
import { BackendUnavailable, NotFound } from "#schemas/system/rejection.ts"
import { TrustId, TrustRequest } from "#schemas/trust.ts"

export const TrustsGroup = HttpApiGroup.make("trusts")
  .annotate(OpenApi.Description, "Trusts of the embedded identity.")
  .add(
    HttpApiEndpoint.post("create", "/v1/admin/trusts", {
      payload: TrustRequest,
      success: Schema.Struct({ trust_id: Schema.String }),
      error: [BackendUnavailable],
    })
      .annotate(OpenApi.Summary, "Create a trust")
      .annotate(Needs, { roles: ["admin"] }),
    HttpApiEndpoint.post("revoke", "/v1/admin/trusts/:trust_id/revoke", {
      params: { trust_id: TrustId },
      success: Schema.Struct({ trust_id: Schema.String }),
      error: [NotFound, BackendUnavailable],
    })
      .annotate(OpenApi.Summary, "Revoke a trust")
      .annotate(Needs, { roles: ["admin"] }),
  )
