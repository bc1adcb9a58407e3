/** `POST /v1/admin/secrets`: what the verb `secret put` asks a running instance. */
import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, OpenApi } from "effect/http-api"
import { Needs } from "#gateway/access.ts"
import { SecretRequest } from "#schemas/secret.ts"
import { BackendUnavailable } from "#schemas/system/rejection.ts"

export const SecretsGroup = HttpApiGroup.make("secrets")
  .annotate(OpenApi.Description, "Secrets of the embedded vault.")
  .add(
    HttpApiEndpoint.post("put", "/v1/admin/secrets", {
      payload: SecretRequest,
      success: Schema.Struct({ href: Schema.String }),
      error: [BackendUnavailable],
    })
      .annotate(OpenApi.Summary, "Keep a secret")
      .annotate(Needs, { roles: ["admin"] }),
  )
