/**
 * The role `conductor`: background processes, each of which runs in one process by its lease.
 * Source: decision 0140; DESIGN of the running system, 7.
 */
import { Effect } from "effect"
import { Cluster } from "#actors/blob-storage/cluster.ts"
import { watchdog } from "#actors/blob-storage/watchdog.ts"
import { runProcess } from "#actors/process.ts"
import { checkpointer } from "#actors/system/checkpointer.ts"
import { anchorPublication } from "#actors/system/publication.ts"
import { timer } from "#actors/timer.ts"
import { publisher } from "#projections/published/publisher.ts"
import type { Settings } from "#schemas/settings.ts"
import { capitalScheduler } from "#server/capital-pressure/scheduler.ts"
import { withLease } from "#server/lease.ts"
import type { SettingsSources } from "#server/program.ts"
import { publishing } from "#server/published.ts"
import type { RoleParts } from "#server/roles/parts.ts"
import { conducting } from "#server/share-protection/conductor.ts"
import { deliverWebhooks } from "#server/webhooks.ts"

/** Background processes for all services. */
const upkeep = Effect.fnUntraced(function* (
  settings: Settings,
  node_id: string,
  { hooks }: RoleParts,
) {
  yield* withLease("system-publisher", node_id, () => publisher(publishing, anchorPublication))
  yield* Effect.provideContext(deliverWebhooks(settings, node_id), yield* hooks)
  const { checkpoint_commits: commits, checkpoint_seconds: seconds } = settings.audit
  yield* withLease("system-checkpointer", node_id, () =>
    runProcess(checkpointer({ commits, seconds })),
  )
})

/** The timer and the watchdog of a blob cluster. */
const watchCluster = Effect.fnUntraced(function* (
  { cluster }: Settings,
  node_id: string,
  { live_nodes }: RoleParts,
) {
  yield* withLease("blob-storage-timer", node_id, () =>
    runProcess(timer("blob-storage", [Cluster])),
  )
  const watching = withLease("blob-storage-watchdog", node_id, (fence) =>
    watchdog({ ...cluster, cluster: cluster.name, fence }),
  )
  yield* Effect.provideContext(watching, yield* live_nodes)
})

/**
 * Works in the background until the scope closes. Returns an effect with the reason why share
 * protection's conductor does not work, or, without that service, the problem of the bus; undefined
 * while it works or waits for its lease.
 */
export const conductor = Effect.fnUntraced(function* (
  current: () => Settings,
  node_id: string,
  sources: SettingsSources,
  parts: RoleParts,
) {
  const settings = current()
  const { services } = settings
  const bus = yield* parts.bus
  yield* upkeep(settings, node_id, parts)
  if (services.includes("blob-storage")) yield* watchCluster(settings, node_id, parts)
  if (services.includes("capital-pressure")) yield* capitalScheduler(node_id, settings, sources)
  if (!services.includes("share-protection")) return bus.problem
  const around = yield* parts.outside
  return yield* conducting(node_id, current, around.services, bus)
})
