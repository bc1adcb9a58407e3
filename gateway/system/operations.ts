/** Handlers of the endpoints that belong to no service. */
import { Context, Effect, Layer } from "effect"
import { HttpApiBuilder } from "effect/http-api"
import { OperationsApi } from "#gateway/system/apis/operations.ts"
import {
  auditAggregate,
  auditHead,
  auditKey,
  exportAudit,
  listAudit,
  logFigures,
} from "#gateway/system/audit.ts"
import {
  createTrust,
  issueToken,
  putSecret,
  revokeTokens,
  revokeTrust,
} from "#gateway/system/credentials.ts"
import { subscribe } from "#gateway/system/events.ts"
import { compareReadModel, listReadModels, rebuildReadModel } from "#gateway/system/read-models.ts"
import { webhookHandlers } from "#gateway/system/webhooks.ts"
import { issueTicket } from "#gateway/ticket/issue.ts"
import type { Chart } from "#schemas/system/chart.ts"

const events = HttpApiBuilder.group(OperationsApi, "events", (handlers) =>
  handlers.handle("subscribe", subscribe).handle("ticket", () => issueTicket),
)

const audit = HttpApiBuilder.group(OperationsApi, "audit", (handlers) =>
  handlers.handle("list", listAudit).handle("aggregate", auditAggregate),
)

const auditProofs = HttpApiBuilder.group(OperationsApi, "audit-proofs", (handlers) =>
  handlers
    .handle("export", exportAudit)
    .handle("head", () => auditHead)
    .handle("key", () => auditKey)
    .handle("log", () => logFigures),
)

const readModels = HttpApiBuilder.group(OperationsApi, "read-models", (handlers) =>
  handlers
    .handle("list", () => listReadModels)
    .handle("rebuild", rebuildReadModel)
    .handle("difference", compareReadModel),
)

/** The charts of this program, ordered by id; built at the first request. */
export class Charts extends Context.Service<Charts, () => ReadonlyArray<Chart>>()(
  "gateway/Charts",
) {}

export const listCharts = Effect.map(Charts, (all) => ({ charts: all() }))

const charts = HttpApiBuilder.group(OperationsApi, "charts", (handlers) =>
  handlers.handle("list", () => listCharts),
)

const tokens = HttpApiBuilder.group(OperationsApi, "tokens", (handlers) =>
  handlers
    .handle("issue", ({ payload }) => issueToken(payload))
    .handle("revoke", ({ params }) => revokeTokens(params.name)),
)

const secrets = HttpApiBuilder.group(OperationsApi, "secrets", (handlers) =>
  handlers.handle("put", ({ payload }) => putSecret(payload)),
)

const trusts = HttpApiBuilder.group(OperationsApi, "trusts", (handlers) =>
  handlers
    .handle("create", ({ payload }) => createTrust(payload))
    .handle("revoke", ({ params }) => revokeTrust(params.trust_id)),
)

const webhooks = HttpApiBuilder.group(OperationsApi, "webhooks", (handlers) =>
  handlers.handleAll(webhookHandlers),
)

const adminWebhooks = HttpApiBuilder.group(OperationsApi, "admin-webhooks", (handlers) =>
  handlers.handleAll(webhookHandlers),
)

export const operations = Layer.mergeAll(
  events,
  audit,
  auditProofs,
  readModels,
  tokens,
  secrets,
  trusts,
  charts,
  webhooks,
  adminWebhooks,
)
