/** `/v1/admin/tokens`: tokens that every process of a deployment knows. */
import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, OpenApi } from "effect/http-api"
import { Needs } from "#gateway/access.ts"
import { BackendUnavailable, NotFound } from "#schemas/system/rejection.ts"
import { TokenName, TokenRequest } from "#schemas/token.ts"

export const Tokens = HttpApiGroup.make("tokens")
  .annotate(OpenApi.Description, "Issued tokens.")
  .add(
    HttpApiEndpoint.post("issue", "/v1/admin/tokens", {
      payload: TokenRequest,
      success: Schema.Struct({ token: Schema.String }),
      error: [BackendUnavailable],
    })
      .annotate(OpenApi.Summary, "Issue a token")
      .annotate(Needs, { roles: ["admin"] }),
    HttpApiEndpoint.post("revoke", "/v1/admin/tokens/:name/revoke", {
      params: { name: TokenName },
      success: Schema.Struct({ revoked: Schema.Int }),
      error: [NotFound, BackendUnavailable],
    })
      .annotate(OpenApi.Summary, "Revoke all tokens of a name")
      .annotate(Needs, { roles: ["admin"] }),
  )
