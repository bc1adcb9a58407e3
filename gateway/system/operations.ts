import { Layer } from "effect"
import { HttpApiBuilder } from "effect/http-api"
import { OperationsApi } from "#gateway/system/apis/operations.ts"
import { auditAggregate, listAudit } from "#gateway/system/audit.ts"
import { auditHead, auditKey, exportAudit, logFigures } from "#gateway/system/audit-proof.ts"
import { listCharts } from "#gateway/system/charts.ts"
import { subscribe } from "#gateway/system/events.ts"
import { compareReadModel, listReadModels, rebuildReadModel } from "#gateway/system/read-models.ts"
import { putSecret } from "#gateway/system/secrets.ts"
import { issueToken, revokeTokens } from "#gateway/system/tokens.ts"
import { createTrust, revokeTrust } from "#gateway/system/trusts.ts"
import { webhookHandlers } from "#gateway/system/webhooks.ts"
import { issueTicket } from "#gateway/ticket/issue.ts"

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
