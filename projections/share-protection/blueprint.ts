/** Share protection's read model: its tables, and how they are maintained. */
import { Context, Layer } from "effect"
import { type Blueprint, type ReadModel, readModel } from "#projections/read-model.ts"
import { type BackupTables, backup } from "#projections/share-protection/backup.ts"
import { type DomainTables, domain } from "#projections/share-protection/domain.ts"
import { type JobTables, job } from "#projections/share-protection/job.ts"
import { type PolicyTables, policy } from "#projections/share-protection/policy.ts"
import { type ReceiptTables, receipt } from "#projections/share-protection/receipt.ts"
import {
  type ReconciliationTables,
  reconciliation,
} from "#projections/share-protection/reconciliation.ts"
import { type RestoreTables, restore } from "#projections/share-protection/restore.ts"
import { type RestoreTestTables, restoreTest } from "#projections/share-protection/restore-test.ts"
import { type RolloutTables, rollout } from "#projections/share-protection/rollout.ts"
import { type SchedulerTables, scheduler } from "#projections/share-protection/scheduler.ts"
import { type TargetTables, target } from "#projections/share-protection/target.ts"
import {
  type TargetTemplateTables,
  targetTemplate,
} from "#projections/share-protection/target-template.ts"
import { type WorkerTables, worker } from "#projections/share-protection/worker.ts"

export type ShareProtectionTables = TargetTables &
  TargetTemplateTables &
  PolicyTables &
  BackupTables &
  RestoreTables &
  RestoreTestTables &
  JobTables &
  WorkerTables &
  RolloutTables &
  DomainTables &
  SchedulerTables &
  ReconciliationTables &
  ReceiptTables

export const blueprint: Blueprint<ShareProtectionTables> = {
  service: "share-protection",
  version: 4,
  part: "share-protection",
  projections: [
    target,
    targetTemplate,
    policy,
    backup,
    restore,
    restoreTest,
    job,
    worker,
    rollout,
    domain,
    scheduler,
    reconciliation,
    receipt,
  ],
}

export class ShareProtectionModel extends Context.Service<
  ShareProtectionModel,
  ReadModel<ShareProtectionTables>
>()("projections/ShareProtectionModel") {
  /** Follows the log for the lifetime of the layer. */
  static readonly layer = Layer.effect(this, readModel(blueprint))
}
