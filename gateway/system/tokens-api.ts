/** `POST /v1/admin/tokens`: what the verb `token issue` asks a running instance. */
import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, OpenApi } from "effect/http-api"
import { Needs } from "#gateway/access.ts"
import { BackendUnavailable } from "#schemas/system/rejection.ts"
import { TokenRequest } from "#schemas/token.ts"

export const Tokens = HttpApiGroup.make("tokens")
  .annotate(OpenApi.Description, "Tokens of the embedded identity.")
  .add(
    HttpApiEndpoint.post("issue", "/v1/admin/tokens", {
      payload: TokenRequest,
      success: Schema.Struct({ token: Schema.String }),
      error: [BackendUnavailable],
    })
      .annotate(OpenApi.Summary, "Issue a token")
      .annotate(Needs, { roles: ["admin"] }),
  )
