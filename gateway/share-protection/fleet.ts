/** The fleet's images. Source: document 2 §4 repo-format-upgrade, §9; DECISIONS, error codes. */
import { Effect } from "effect"
import { Deployment } from "#gateway/share-protection/deployment.ts"
import { ShareProtectionModel } from "#projections/share-protection/blueprint.ts"
import { findDomain } from "#projections/share-protection/domain.ts"
import { listWorkers, type WorkerRow } from "#projections/share-protection/worker.ts"
import { Conflict } from "#schemas/share-protection/rejection.ts"

/** Workers per query. */
const page_rows = 1000

/** States in which an old engine may still read or write a repository. */
const running_states = ["booting", "ready", "draining", "retiring"] as const

const workersIn = (state: WorkerRow["state"]) =>
  Effect.gen(function* () {
    const { db } = yield* ShareProtectionModel
    const workers: Array<WorkerRow> = []
    let marker: string | undefined
    do {
      const page = yield* listWorkers(db, { state }, { limit: page_rows, marker })
      workers.push(...page.rows)
      marker = page.next_marker ?? undefined
    } while (marker !== undefined)
    return workers
  })

/** The configured image of a worker's domain; empty if none is set. */
const configuredImage = Effect.fnUntraced(function* ({ domain_id }: WorkerRow) {
  const { db } = yield* ShareProtectionModel
  const domain = domain_id === null ? undefined : yield* findDomain(db, domain_id)
  return domain?.worker_boot_image ?? (yield* Deployment).settings().conductor.worker_boot_image
})

/**
 * Rejects the request while a worker still runs an old image: its engine could not read the new
 * format. Without a configured image, workers with two images are a mixed fleet.
 */
export const requireSingleImage = Effect.gen(function* () {
  const workers = (yield* Effect.forEach(running_states, workersIn)).flat()
  const images = new Set<string>()
  for (const worker of workers) {
    const { id, image_version } = worker
    if (image_version === null) continue
    images.add(image_version)
    const expected_image = yield* configuredImage(worker)
    const is_old = expected_image === "" ? images.size > 1 : image_version !== expected_image
    if (!is_old) continue
    const detail = `MixedFleetBackupEngineFormatUnsafe: worker ${id} runs image ${image_version}.`
    return yield* new Conflict({ detail })
  }
})
