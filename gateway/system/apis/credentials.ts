/** Tokens, trusts and secrets over HTTP, for operators. */
import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, OpenApi } from "effect/http-api"
import { Needs } from "#gateway/access.ts"
import { SecretRequest } from "#schemas/secret.ts"
import { BackendUnavailable, NotFound } from "#schemas/system/rejection.ts"
import { TokenName, TokenRequest } from "#schemas/token.ts"
import { TrustId, TrustRequest } from "#schemas/trust.ts"

const operators = { roles: ["admin"] } as const

export const Tokens = HttpApiGroup.make("tokens")
  .annotate(OpenApi.Description, "Issued tokens.")
  .add(
    HttpApiEndpoint.post("issue", "/v1/admin/tokens", {
      payload: TokenRequest,
      success: Schema.Struct({ token: Schema.String }),
      error: [BackendUnavailable],
    })
      .annotate(OpenApi.Summary, "Issue a token")
      .annotate(Needs, operators),
    HttpApiEndpoint.post("revoke", "/v1/admin/tokens/:name/revoke", {
      params: { name: TokenName },
      success: Schema.Struct({ revoked: Schema.Int }),
      error: [NotFound, BackendUnavailable],
    })
      .annotate(OpenApi.Summary, "Revoke all tokens of a name")
      .annotate(Needs, operators),
  )

export const TrustsGroup = HttpApiGroup.make("trusts")
  .annotate(OpenApi.Description, "Trusts of the embedded identity.")
  .add(
    HttpApiEndpoint.post("create", "/v1/admin/trusts", {
      payload: TrustRequest,
      success: Schema.Struct({ trust_id: Schema.String }),
      error: [BackendUnavailable],
    })
      .annotate(OpenApi.Summary, "Create a trust")
      .annotate(Needs, operators),
    HttpApiEndpoint.post("revoke", "/v1/admin/trusts/:trust_id/revoke", {
      params: { trust_id: TrustId },
      success: Schema.Struct({ trust_id: Schema.String }),
      error: [NotFound, BackendUnavailable],
    })
      .annotate(OpenApi.Summary, "Revoke a trust")
      .annotate(Needs, operators),
  )

export const SecretsGroup = HttpApiGroup.make("secrets")
  .annotate(OpenApi.Description, "Secrets of the embedded vault.")
  .add(
    HttpApiEndpoint.post("put", "/v1/admin/secrets", {
      payload: SecretRequest,
      success: Schema.Struct({ href: Schema.String }),
      error: [BackendUnavailable],
    })
      .annotate(OpenApi.Summary, "Keep a secret")
      .annotate(Needs, operators),
  )
