/** Share protection's API in either shape. Source: document 2 §4; DECISIONS, which shape. */
import { HttpApi } from "effect/http-api"
import { BodyLimit } from "#gateway/limits.ts"
import { backupGroup } from "#gateway/share-protection/backup-api.ts"
import { DomainGroup } from "#gateway/share-protection/domain-api.ts"
import { HealthGroup } from "#gateway/share-protection/health-api.ts"
import { adminJobGroup, jobGroup } from "#gateway/share-protection/job-api.ts"
import { policyGroup } from "#gateway/share-protection/policy-api.ts"
import { ReconciliationGroup } from "#gateway/share-protection/reconciliation-api.ts"
import { restoreGroup } from "#gateway/share-protection/restore-api.ts"
import { rolloutGroup } from "#gateway/share-protection/rollout-api.ts"
import { SchedulingGroup } from "#gateway/share-protection/scheduling-api.ts"
import { ServiceInfoGroup } from "#gateway/share-protection/service-info-api.ts"
import { body_bytes_max, type Shape, strict } from "#gateway/share-protection/shape.ts"
import { adminTargetGroup, targetGroup } from "#gateway/share-protection/target-api.ts"
import { CoverageGroup, UsageGroup } from "#gateway/share-protection/usage-api.ts"
import { workerGroup } from "#gateway/share-protection/worker-api.ts"

/** What both shapes have; Shape B serves TargetTemplateApi beside it. */
export const apiOf = (shape: Shape) =>
  HttpApi.make("share-protection")
    .add(targetGroup(shape), policyGroup(shape), backupGroup(shape), restoreGroup(shape))
    .add(jobGroup(shape), UsageGroup, ServiceInfoGroup)
    .add(adminTargetGroup(shape), adminJobGroup(shape), workerGroup(shape), CoverageGroup)
    .add(rolloutGroup(shape), DomainGroup, SchedulingGroup, ReconciliationGroup, HealthGroup)
    .annotate(HttpApi.PayloadParseOptions, strict)
    .annotate(BodyLimit, () => body_bytes_max)

export type ShareProtectionApi = ReturnType<typeof apiOf>
