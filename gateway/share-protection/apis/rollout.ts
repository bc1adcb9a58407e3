/** Rollouts over HTTP. Source: document 2 §2 Rollout descriptor, §9; DECISIONS, rollouts. */
import { HttpApiEndpoint, HttpApiGroup, HttpApiSchema, OpenApi } from "effect/http-api"
import { Needs } from "#gateway/access.ts"
import { for_operators } from "#gateway/share-protection/apis/permission.ts"
import { listOf, type Shape } from "#gateway/share-protection/shapes/shape.ts"
import { Conflict, NotFound, rejections, when } from "#schemas/share-protection/rejection.ts"
import { NewRollout, Rollout } from "#schemas/share-protection/rollout.ts"
import { page_query, pathId } from "#schemas/share-protection/views/page.ts"

const about = {
  list: {
    summary: "List rollouts",
    description: `Returns all rollouts, oldest first, one page at a time. ${for_operators}`,
  },
  create: {
    summary: "Create a rollout",
    description:
      "Replaces the workers of these domains that have another image, one at a time, domain by " +
      "domain in the given order. Each old worker is drained, and retires when its " +
      "replacement is " +
      "ready. If a new worker does not boot within `conductor.worker_boot_grace_seconds` (1200), " +
      "the rollout halts, the old worker accepts jobs again, and the event " +
      "`worker_image_rollout_failed` is published. The image must have the property " +
      "`svc_worker_image=1`, which the compute service reports; without one, the response is " +
      "503. " +
      "Only one rollout runs at a time. " +
      for_operators,
  },
  get: { summary: "Get a rollout", description: `Returns a rollout. ${for_operators}` },
}

const create_errors = rejections(
  NotFound,
  when(Conflict, "`svc.conflict`: another rollout is running."),
)

export const rolloutGroup = (shape: Shape) =>
  HttpApiGroup.make("rollouts")
    .annotate(
      OpenApi.Description,
      "Rollouts: replacements of workers by workers with another image, for operators.",
    )
    .add(
      HttpApiEndpoint.get("list", "/v1/admin/rollouts", {
        query: page_query,
        success: listOf(shape, "rollouts", Rollout),
        error: rejections(),
      })
        .annotateMerge(OpenApi.annotations(about.list))
        .annotate(Needs, { rule: "share-protection:admin:rollouts:list" }),
      HttpApiEndpoint.post("create", "/v1/admin/rollouts", {
        payload: NewRollout,
        success: Rollout.pipe(HttpApiSchema.status(202)),
        error: create_errors,
      })
        .annotateMerge(OpenApi.annotations(about.create))
        .annotate(Needs, { rule: "share-protection:admin:rollouts:create" }),
      HttpApiEndpoint.get("get", "/v1/admin/rollouts/:id", {
        params: pathId("rollout"),
        success: Rollout,
        error: rejections(NotFound),
      })
        .annotateMerge(OpenApi.annotations(about.get))
        .annotate(Needs, { rule: "share-protection:admin:rollouts:get" }),
    )
