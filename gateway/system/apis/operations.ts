/** What belongs to no service: events, webhooks, audit, read models, charts, embedded identity. */
import { HttpApi } from "effect/http-api"
import { BodyLimit, command_bytes_max } from "#gateway/limits.ts"
import { Audit } from "#gateway/system/apis/audit.ts"
import { AuditProofs } from "#gateway/system/apis/audit-proof.ts"
import { ChartsGroup } from "#gateway/system/apis/charts.ts"
import { Events } from "#gateway/system/apis/events.ts"
import { ReadModelsGroup } from "#gateway/system/apis/read-models.ts"
import { SecretsGroup } from "#gateway/system/apis/secrets.ts"
import { Tokens } from "#gateway/system/apis/tokens.ts"
import { TrustsGroup } from "#gateway/system/apis/trusts.ts"
import { AdminWebhooksGroup, WebhooksGroup } from "#gateway/system/apis/webhooks.ts"

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
