/** The kinds of aggregates in the log. */
import { Cluster } from "#actors/blob-storage/cluster.ts"
import { Volume } from "#actors/blob-storage/volume.ts"
import { Composite } from "#actors/capital-pressure/composite.ts"
import { Feed } from "#actors/capital-pressure/feed.ts"
import { Observation } from "#actors/capital-pressure/observation.ts"
import { Price } from "#actors/capital-pressure/price.ts"
import { Schedule } from "#actors/capital-pressure/schedule.ts"
import { Watchlist } from "#actors/capital-pressure/watchlist.ts"
import { Search } from "#actors/carrier-search/search.ts"
import type { AnyDecider } from "#actors/decider.ts"
import { Prediction } from "#actors/plant-disease/prediction.ts"
import { judgeOf } from "#actors/readability.ts"
import { Backup } from "#actors/share-protection/backup.ts"
import { Domain } from "#actors/share-protection/domain.ts"
import { Fleet } from "#actors/share-protection/fleet.ts"
import { Job } from "#actors/share-protection/job.ts"
import { Lease } from "#actors/share-protection/lease.ts"
import { Ledger } from "#actors/share-protection/ledger.ts"
import { Policy } from "#actors/share-protection/policy.ts"
import { Reconciliation } from "#actors/share-protection/reconciliation.ts"
import { Restore } from "#actors/share-protection/restore.ts"
import { Rollout } from "#actors/share-protection/rollout.ts"
import { Scheduler } from "#actors/share-protection/scheduler.ts"
import { Target } from "#actors/share-protection/target.ts"
import { TargetTemplate } from "#actors/share-protection/target-template.ts"
import { Worker } from "#actors/share-protection/worker.ts"
import { Quarantine } from "#actors/system/acknowledgement.ts"
import { Checkpoint } from "#actors/system/checkpoint.ts"
import { Election } from "#actors/system/election.ts"
import { Generation } from "#actors/system/generation.ts"
import { Probe } from "#actors/system/probe.ts"
import { Publications } from "#actors/system/publication.ts"
import { Restorations } from "#actors/system/restoration.ts"
import { Token } from "#actors/system/token.ts"
import { Webhook } from "#actors/system/webhook.ts"
import type { Settings } from "#schemas/settings.ts"

/** Every kind of share protection. */
const share_protection: ReadonlyArray<AnyDecider> = [
  Target,
  TargetTemplate,
  Policy,
  Backup,
  Restore,
  Job,
  Lease,
  Ledger,
  Worker,
  Fleet,
  Rollout,
  Domain,
  Scheduler,
  Reconciliation,
]

/** Every kind of the dashboard. */
const capital_pressure: ReadonlyArray<AnyDecider> = [
  Observation,
  Price,
  Composite,
  Feed,
  Schedule,
  Watchlist,
]

/** The kinds that a process with the role `actors` serves, by service. */
export const kinds_of = {
  system: [Election, Checkpoint, Probe, Token, Webhook],
  "blob-storage": [Cluster, Volume],
  "share-protection": share_protection,
  "capital-pressure": capital_pressure,
  "carrier-search": [Search],
  "plant-disease": [Prediction],
} satisfies Readonly<Record<Settings["services"][number] | "system", ReadonlyArray<AnyDecider>>>

/** Every kind whose snapshots `audit verify` recomputes. */
export const deciders: ReadonlyArray<AnyDecider> = [
  Election,
  Checkpoint,
  Generation,
  Probe,
  Publications,
  Quarantine,
  Restorations,
  Token,
  Webhook,
  Cluster,
  Volume,
  ...share_protection,
  ...capital_pressure,
  Search,
  Prediction,
]

/** Judges the commits of every kind. */
export const judge = judgeOf(deciders)
