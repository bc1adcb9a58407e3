/** What belongs to no service: subscribing to events, the audit, read models, tokens. */
import { HttpApi } from "effect/http-api"
import { Audit } from "#gateway/system/audit-api.ts"
import { Events } from "#gateway/system/events-api.ts"
import { ReadModelsGroup } from "#gateway/system/read-models-api.ts"
import { Tokens } from "#gateway/system/tokens-api.ts"

export const OperationsApi = HttpApi.make("operations").add(Events, Audit, ReadModelsGroup, Tokens)
