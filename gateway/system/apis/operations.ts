/**
 * Endpoints that belong to no service: events, webhooks, audit, read models, charts, embedded
 * identity.
 */
import { HttpApi, HttpApiEndpoint, HttpApiGroup, OpenApi } from "effect/http-api"
import { Needs } from "#gateway/access.ts"
import { BodyLimit, command_bytes_max } from "#gateway/limits.ts"
import { Examples } from "#gateway/reference.ts"
import { Audit, AuditProofs } from "#gateway/system/apis/audit.ts"
import { SecretsGroup, Tokens, TrustsGroup } from "#gateway/system/apis/credentials.ts"
import { Events } from "#gateway/system/apis/events.ts"
import examples from "#gateway/system/apis/examples.json" with { type: "json" }
import { ReadModelsGroup } from "#gateway/system/apis/read-models.ts"
import webhook_examples from "#gateway/system/apis/webhook-examples.json" with { type: "json" }
import { AdminWebhooksGroup, WebhooksGroup } from "#gateway/system/apis/webhooks.ts"
import { ChartList } from "#schemas/system/chart.ts"
import { Forbidden } from "#schemas/system/rejection.ts"

/** The charts of all kinds of aggregates, which docs/lifecycles.md draws. */
export const ChartsGroup = HttpApiGroup.make("charts")
  .annotate(
    OpenApi.Description,
    "State charts: the states and transitions of each kind of aggregate.",
  )
  .add(
    HttpApiEndpoint.get("list", "/v1/admin/charts", { success: ChartList, error: Forbidden })
      .annotate(OpenApi.Summary, "List the state charts")
      .annotate(
        OpenApi.Description,
        "Returns the state chart of each kind of aggregate, with its states and " +
          "transitions. The list is not paginated.",
      )
      .annotate(Needs, { roles: ["admin"] }),
  )

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
  .annotate(Examples, { ...examples, ...webhook_examples })
