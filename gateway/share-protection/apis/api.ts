/** Share protection's API in either shape. Source: document 2 §4; DECISIONS, which shape. */
import { HttpApi } from "effect/http-api"
import { BodyLimit } from "#gateway/limits.ts"
import { Examples } from "#gateway/reference.ts"
import { backupGroup } from "#gateway/share-protection/apis/backup.ts"
import { DomainGroup } from "#gateway/share-protection/apis/domain.ts"
import { HealthGroup } from "#gateway/share-protection/apis/health.ts"
import { adminJobGroup, jobGroup } from "#gateway/share-protection/apis/job.ts"
import { policyGroup } from "#gateway/share-protection/apis/policy.ts"
import { ReconciliationGroup } from "#gateway/share-protection/apis/reconciliation.ts"
import { restoreGroup } from "#gateway/share-protection/apis/restore.ts"
import { rolloutGroup } from "#gateway/share-protection/apis/rollout.ts"
import { SchedulingGroup } from "#gateway/share-protection/apis/scheduling.ts"
import { ServiceInfoGroup } from "#gateway/share-protection/apis/service-info.ts"
import { adminTargetGroup, targetGroup } from "#gateway/share-protection/apis/target.ts"
import { CoverageGroup, UsageGroup } from "#gateway/share-protection/apis/usage.ts"
import { workerGroup } from "#gateway/share-protection/apis/worker.ts"
import examples_a from "#gateway/share-protection/shapes/examples-a.json" with { type: "json" }
import examples_b from "#gateway/share-protection/shapes/examples-b.json" with { type: "json" }
import { body_bytes_max, type Shape, strict } from "#gateway/share-protection/shapes/shape.ts"

/** The endpoints of both shapes; Shape B also serves TargetTemplateApi. */
export const apiOf = (shape: Shape) =>
  HttpApi.make("share-protection")
    .add(targetGroup(shape), policyGroup(shape), backupGroup(shape), restoreGroup(shape))
    .add(jobGroup(shape), UsageGroup, ServiceInfoGroup)
    .add(adminTargetGroup(shape), adminJobGroup(shape), workerGroup(shape), CoverageGroup)
    .add(rolloutGroup(shape), DomainGroup, SchedulingGroup, ReconciliationGroup, HealthGroup)
    .annotate(HttpApi.PayloadParseOptions, strict)
    .annotate(BodyLimit, () => body_bytes_max)
    .annotate(Examples, shape.name === "A" ? examples_a : examples_b)

export type ShareProtectionApi = ReturnType<typeof apiOf>
