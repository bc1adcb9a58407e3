import { Layer } from "effect"
import { HttpApiBuilder } from "effect/http-api"
import { auditAggregate, listAudit } from "#gateway/system/audit.ts"
import { subscribe } from "#gateway/system/events.ts"
import { OperationsApi } from "#gateway/system/operations-api.ts"
import { listReadModels, rebuildReadModel } from "#gateway/system/read-models.ts"
import { issue } from "#gateway/system/tokens.ts"

const events = HttpApiBuilder.group(OperationsApi, "events", (handlers) =>
  handlers.handle("subscribe", subscribe),
)

const audit = HttpApiBuilder.group(OperationsApi, "audit", (handlers) =>
  handlers.handle("list", listAudit).handle("aggregate", auditAggregate),
)

const readModels = HttpApiBuilder.group(OperationsApi, "read-models", (handlers) =>
  handlers.handle("list", () => listReadModels).handle("rebuild", rebuildReadModel),
)

const tokens = HttpApiBuilder.group(OperationsApi, "tokens", (handlers) =>
  handlers.handle("issue", ({ payload }) => issue(payload)),
)

export const operations = Layer.mergeAll(events, audit, readModels, tokens)
