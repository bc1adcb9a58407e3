/** The charts of all aggregates, for the console. */
import type { AnyStateMachine } from "xstate"
import * as cluster from "#actors/blob-storage/cluster.ts"
import * as node from "#actors/blob-storage/node.ts"
import * as volume from "#actors/blob-storage/volume.ts"
import * as composite from "#actors/capital-pressure/composite.ts"
import * as feed from "#actors/capital-pressure/feed.ts"
import * as observation from "#actors/capital-pressure/observation.ts"
import * as price from "#actors/capital-pressure/price.ts"
import * as schedule from "#actors/capital-pressure/schedule.ts"
import * as watchlist from "#actors/capital-pressure/watchlist.ts"
import * as search from "#actors/carrier-search/search.ts"
import { chartData } from "#actors/chart.ts"
import * as prediction from "#actors/plant-disease/prediction.ts"
import * as backup from "#actors/share-protection/backup.ts"
import * as domain from "#actors/share-protection/domain.ts"
import * as fleet from "#actors/share-protection/fleet.ts"
import * as job from "#actors/share-protection/job.ts"
import * as lease from "#actors/share-protection/lease.ts"
import * as ledger from "#actors/share-protection/ledger.ts"
import * as policy from "#actors/share-protection/policy.ts"
import * as reconciliation from "#actors/share-protection/reconciliation.ts"
import * as restore from "#actors/share-protection/restore.ts"
import * as rollout from "#actors/share-protection/rollout.ts"
import * as scheduler from "#actors/share-protection/scheduler.ts"
import * as target from "#actors/share-protection/target.ts"
import * as template from "#actors/share-protection/target-template.ts"
import * as worker from "#actors/share-protection/worker.ts"
import * as quarantine from "#actors/system/acknowledgement.ts"
import * as checkpoint from "#actors/system/checkpoint.ts"
import * as election from "#actors/system/election.ts"
import * as generation from "#actors/system/generation.ts"
import * as probe from "#actors/system/probe.ts"
import * as publication from "#actors/system/publication.ts"
import * as restoration from "#actors/system/restoration.ts"
import * as token from "#actors/system/token.ts"
import * as webhook from "#actors/system/webhook.ts"
import type { Chart } from "#schemas/system/chart.ts"
import { chart_descriptions } from "#server/chart-descriptions.ts"

const machines: ReadonlyArray<AnyStateMachine> = [
  cluster,
  node,
  volume,
  composite,
  feed,
  observation,
  price,
  schedule,
  watchlist,
  search,
  prediction,
  backup,
  domain,
  fleet,
  job,
  lease,
  ledger,
  policy,
  reconciliation,
  restore,
  rollout,
  scheduler,
  target,
  template,
  worker,
  checkpoint,
  election,
  generation,
  probe,
  publication,
  quarantine,
  restoration,
  token,
  webhook,
].map(({ machine }) => machine)

const cache: Array<Chart> = []

/** All charts, sorted by id; computed once. */
export const charts = (): ReadonlyArray<Chart> => {
  if (cache.length === 0) {
    const drawn = machines.map((machine) => chartData(machine, chart_descriptions[machine.id]))
    cache.push(...drawn.toSorted((one, other) => (one.id < other.id ? -1 : 1)))
  }
  return cache
}
