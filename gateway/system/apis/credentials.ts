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
  .annotate(OpenApi.Description, "Tokens that operators issue and revoke.")
  .add(
    HttpApiEndpoint.post("issue", "/v1/admin/tokens", {
      payload: TokenRequest,
      success: Schema.Struct({
        token: Schema.String.annotate({ description: "The token. Keep it secret." }),
      }),
      error: [BackendUnavailable],
    })
      .annotate(OpenApi.Summary, "Issue a token")
      .annotate(
        OpenApi.Description,
        "Issues a token with these scopes and roles. Only this response and the response to a " +
          "retry with the same `Idempotency-Key` contain it. Without `name`, the name is a new " +
          "UUID. Event: `token_issued`.",
      )
      .annotate(Needs, operators),
    HttpApiEndpoint.post("revoke", "/v1/admin/tokens/:name/revoke", {
      params: { name: TokenName.annotate({ description: "Name of the tokens." }) },
      success: Schema.Struct({
        revoked: Schema.Int.annotate({ description: "Number of tokens that were revoked." }),
      }),
      error: [
        NotFound.annotate({ description: "No valid token has this name." }),
        BackendUnavailable,
      ],
    })
      .annotate(OpenApi.Summary, "Revoke the tokens of a name")
      .annotate(
        OpenApi.Description,
        "Revokes all tokens of the name. They are invalid at once, and streams that were " +
          "opened with them end. A retry after success returns 404.",
      )
      .annotate(Needs, operators),
  )

export const TrustsGroup = HttpApiGroup.make("trusts")
  .annotate(
    OpenApi.Description,
    "Trusts of the embedded identity service, which let the service act for a project.",
  )
  .add(
    HttpApiEndpoint.post("create", "/v1/admin/trusts", {
      payload: TrustRequest,
      success: Schema.Struct({
        trust_id: Schema.String.annotate({ description: "ID of the trust." }),
      }),
      error: [BackendUnavailable],
    })
      .annotate(OpenApi.Summary, "Create a trust")
      .annotate(
        OpenApi.Description,
        "Creates a trust for this service in the embedded identity service, and returns its " +
          "id. With Keystone the response is 503: create the trust there.",
      )
      .annotate(Needs, operators),
    HttpApiEndpoint.post("revoke", "/v1/admin/trusts/:trust_id/revoke", {
      params: { trust_id: TrustId.annotate({ description: "ID of the trust." }) },
      success: Schema.Struct({
        trust_id: Schema.String.annotate({ description: "ID of the revoked trust." }),
      }),
      error: [
        NotFound.annotate({ description: "There is no such trust, or it was revoked before." }),
        BackendUnavailable,
      ],
    })
      .annotate(OpenApi.Summary, "Revoke a trust")
      .annotate(
        OpenApi.Description,
        "Revokes the trust, and invalidates all tokens obtained with it. With Keystone the " +
          "response is 503: revoke the trust there.",
      )
      .annotate(Needs, operators),
  )

export const SecretsGroup = HttpApiGroup.make("secrets")
  .annotate(OpenApi.Description, "Secrets of the embedded vault, for example S3 keys.")
  .add(
    HttpApiEndpoint.post("put", "/v1/admin/secrets", {
      payload: SecretRequest,
      success: Schema.Struct({
        href: Schema.String.annotate({ description: "The href of the secret." }),
      }),
      error: [BackendUnavailable],
    })
      .annotate(OpenApi.Summary, "Store a secret")
      .annotate(
        OpenApi.Description,
        "Stores a secret of a project in the embedded vault and returns its href, which " +
          "targets use. No operation returns the payload to operators. With Barbican the " +
          "response is 503: store the secret there.",
      )
      .annotate(Needs, operators),
  )
