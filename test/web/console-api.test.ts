/** Server responses have the shapes that the console reads, as checked by the compiler. */
import { expectTypeOf, it } from "vitest"
import type { ReadModelList } from "#gateway/system/apis/read-models.ts"
import type { ClusterMetrics } from "#schemas/blob-storage/cluster.ts"
import type { ReconciliationStatus } from "#schemas/share-protection/reconciliation.ts"
import type { Rollout } from "#schemas/share-protection/rollout.ts"
import type { SchedulingStatus } from "#schemas/share-protection/scheduler.ts"
import type { Job } from "#schemas/share-protection/views/job.ts"
import type { TargetA, TargetB } from "#schemas/share-protection/views/target.ts"
import type { CoverageEntry } from "#schemas/share-protection/views/usage.ts"
import type { Worker } from "#schemas/share-protection/worker.ts"
import type * as audit from "#schemas/system/audit.ts"
import type { Chart } from "#schemas/system/chart.ts"
import type * as page from "../../web/console/api.ts"

/** The JSON form: 64-bit integers as numbers, or as strings if so configured. */
type Wire<Value> = Value extends bigint
  ? number | string
  : Value extends string | number
    ? Value
    : { readonly [Name in keyof Value]: Wire<Value[Name]> }

it("has the shapes that the console reads", () => {
  expectTypeOf<Job>().toExtend<page.Job>()
  expectTypeOf<Worker>().toExtend<page.Worker>()
  expectTypeOf<Rollout>().toExtend<page.Rollout>()
  expectTypeOf<SchedulingStatus>().toExtend<page.Scheduling>()
  expectTypeOf<ReconciliationStatus>().toExtend<page.Reconciliation>()
  expectTypeOf<CoverageEntry>().toExtend<page.Coverage>()
  expectTypeOf<TargetA>().toExtend<page.Target>()
  expectTypeOf<TargetB>().toExtend<page.Target>()
  expectTypeOf<Wire<typeof ClusterMetrics.Type>>().toExtend<page.ClusterMetrics>()
  expectTypeOf<typeof ReadModelList.Type>().toExtend<page.ReadModels>()
  expectTypeOf<audit.AuditPage>().toExtend<page.AuditPage>()
  expectTypeOf<audit.AuditHistory>().toExtend<page.AuditHistory>()
  expectTypeOf<audit.AuditState>().toExtend<page.AuditState>()
  expectTypeOf<audit.LogFigures>().toExtend<page.LogUsage>()
  expectTypeOf<Chart>().toEqualTypeOf<page.Chart>()
})
