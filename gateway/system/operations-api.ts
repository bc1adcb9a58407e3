/** What belongs to no service: events, the audit, read models, and the embedded identity. */
import { HttpApi } from "effect/http-api"
import { Audit } from "#gateway/system/audit-api.ts"
import { Events } from "#gateway/system/events-api.ts"
import { ReadModelsGroup } from "#gateway/system/read-models-api.ts"
import { SecretsGroup } from "#gateway/system/secrets-api.ts"
import { Tokens } from "#gateway/system/tokens-api.ts"
import { TrustsGroup } from "#gateway/system/trusts-api.ts"

export const OperationsApi = HttpApi.make("operations").add(
  ...([Events, Audit, ReadModelsGroup] as const),
  ...([Tokens, SecretsGroup, TrustsGroup] as const),
)
