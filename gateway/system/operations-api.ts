/** What belongs to no service: events, webhooks, audit, read models, charts, embedded identity. */
import { HttpApi } from "effect/http-api"
import { BodyLimit, command_bytes_max } from "#gateway/limits.ts"
import { Audit } from "#gateway/system/audit-api.ts"
import { AuditProofs } from "#gateway/system/audit-proof-api.ts"
import { ChartsGroup } from "#gateway/system/charts-api.ts"
import { Events } from "#gateway/system/events-api.ts"
import { ReadModelsGroup } from "#gateway/system/read-models-api.ts"
import { SecretsGroup } from "#gateway/system/secrets-api.ts"
import { Tokens } from "#gateway/system/tokens-api.ts"
import { TrustsGroup } from "#gateway/system/trusts-api.ts"
import { AdminWebhooksGroup, WebhooksGroup } from "#gateway/system/webhooks-api.ts"

export const OperationsApi = HttpApi.make("operations")
  .add(
    Events,
    Audit,
    AuditProofs,
    ReadModelsGroup,
    Tokens,
    SecretsGroup,
    TrustsGroup,
    ChartsGroup,
    WebhooksGroup,
    AdminWebhooksGroup,
  )
  .annotate(BodyLimit, () => command_bytes_max)
