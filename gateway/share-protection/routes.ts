/** All of share protection over HTTP. */
import { Layer } from "effect"
import { HttpApiBuilder } from "effect/http-api"
import { adminTargetHandlers } from "#gateway/share-protection/admin-target.ts"
import { apiOf } from "#gateway/share-protection/apis/api.ts"
import { TargetTemplateApi } from "#gateway/share-protection/apis/target-template.ts"
import { backupHandlers } from "#gateway/share-protection/backup.ts"
import { domainHandlers } from "#gateway/share-protection/domain.ts"
import { healthHandlers } from "#gateway/share-protection/health.ts"
import { adminJobHandlers, jobHandlers } from "#gateway/share-protection/job.ts"
import { policyHandlers } from "#gateway/share-protection/policy.ts"
import { reconciliationHandlers } from "#gateway/share-protection/reconciliation.ts"
import { restoreHandlers } from "#gateway/share-protection/restore.ts"
import { rolloutHandlers } from "#gateway/share-protection/rollout.ts"
import { schedulingHandlers } from "#gateway/share-protection/scheduling.ts"
import { serviceInfoHandlers } from "#gateway/share-protection/service-info.ts"
import type { Shape } from "#gateway/share-protection/shapes/shape.ts"
import { targetHandlers } from "#gateway/share-protection/target.ts"
import { targetTemplateHandlers } from "#gateway/share-protection/target-template.ts"
import { coverageHandlers, usageHandlers } from "#gateway/share-protection/usage.ts"
import { workerHandlers } from "#gateway/share-protection/worker.ts"

/** The API of a shape and its routes. Shape B alone has templates. */
export const served = (shape: Shape) => {
  const api = apiOf(shape)
  const handlers = Layer.mergeAll(
    targetHandlers(api),
    policyHandlers(api),
    backupHandlers(api),
    restoreHandlers(api),
    jobHandlers(api),
    usageHandlers(api),
    serviceInfoHandlers(api),
    adminTargetHandlers(api),
    adminJobHandlers(api),
    workerHandlers(api),
    coverageHandlers(api),
    rolloutHandlers(api),
    domainHandlers(api),
    schedulingHandlers(api),
    reconciliationHandlers(api),
    healthHandlers(api),
  )
  const routes = HttpApiBuilder.layer(api).pipe(Layer.provide(handlers))
  if (shape.name === "A") return { api, routes }
  const templates = HttpApiBuilder.layer(TargetTemplateApi).pipe(
    Layer.provide(targetTemplateHandlers),
  )
  return { api: api.addHttpApi(TargetTemplateApi), routes: Layer.mergeAll(routes, templates) }
}
