/** Handlers of reconciliation. Source: document 2 §2, §4; DECISIONS. */
import { DateTime, Effect } from "effect"
import { HttpApiBuilder } from "effect/http-api"
import { address } from "#actors/commands.ts"
import { Reconciliation } from "#actors/share-protection/reconciliation.ts"
import type { ShareProtectionApi } from "#gateway/share-protection/apis/api.ts"
import { send } from "#gateway/share-protection/commands.ts"
import { Deployment } from "#gateway/share-protection/deployment.ts"
import { jsonResponse } from "#gateway/share-protection/responses.ts"
import { ShareProtectionModel } from "#projections/share-protection/blueprint.ts"
import { findReconciliation } from "#projections/share-protection/reconciliation.ts"
import {
  type ReconciliationStatus,
  reconciliation_loops,
  TriggerReconciliation,
} from "#schemas/share-protection/reconciliation.ts"

/** The id of the only reconciliation. */
const main = "main"

const nextRun = (last_run_at: string | null, interval_s: number) =>
  last_run_at === null
    ? null
    : DateTime.formatIso(DateTime.makeUnsafe(Date.parse(last_run_at) + interval_s * 1000))

const status = Effect.gen(function* () {
  const { db } = yield* ShareProtectionModel
  const { conductor } = (yield* Deployment).settings()
  const { status, last_run_at, drift, drift_count } = yield* findReconciliation(db, main)
  const next_run_at = nextRun(last_run_at, conductor.reconciliation_interval)
  const view: ReconciliationStatus = {
    loops: reconciliation_loops,
    status,
    last_run_at,
    next_run_at,
    drift,
    drift_count,
  }
  return jsonResponse(view)
})

const trigger = Effect.gen(function* () {
  const command = TriggerReconciliation.make({})
  const position = yield* send([address(Reconciliation, main, command)], [])
  return jsonResponse({ status: "triggered" }, { status: 202, position })
})

export const reconciliationHandlers = (api: ShareProtectionApi) =>
  HttpApiBuilder.group(api, "reconciliation", (handlers) =>
    handlers.handleAll({ get: () => status, trigger: () => trigger }),
  )
