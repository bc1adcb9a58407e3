/** Rollouts over HTTP. Source: document 2 §2 Rollout descriptor, §9; DECISIONS, rollouts. */
import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, HttpApiSchema, OpenApi } from "effect/http-api"
import { Needs } from "#gateway/access.ts"
import { listOf, type Shape } from "#gateway/share-protection/shapes/shape.ts"
import { Conflict, NotFound, rejections } from "#schemas/share-protection/rejection.ts"
import { NewRollout, Rollout } from "#schemas/share-protection/rollout.ts"
import { page_query } from "#schemas/share-protection/views/page.ts"

export const rolloutGroup = (shape: Shape) =>
  HttpApiGroup.make("rollouts")
    .annotate(OpenApi.Description, "Rollouts: another image for the workers.")
    .add(
      HttpApiEndpoint.get("list", "/v1/admin/rollouts", {
        query: page_query,
        success: listOf(shape, "rollouts", Rollout),
        error: rejections(),
      })
        .annotate(OpenApi.Summary, "List the rollouts")
        .annotate(Needs, { rule: "share-protection:admin:rollouts:list" }),
      HttpApiEndpoint.post("create", "/v1/admin/rollouts", {
        payload: NewRollout,
        success: Rollout.pipe(HttpApiSchema.status(202)),
        error: rejections(NotFound, Conflict),
      })
        .annotate(OpenApi.Summary, "Start a rollout")
        .annotate(Needs, { rule: "share-protection:admin:rollouts:create" }),
      HttpApiEndpoint.get("get", "/v1/admin/rollouts/:id", {
        params: { id: Schema.String },
        success: Rollout,
        error: rejections(NotFound),
      })
        .annotate(OpenApi.Summary, "Read a rollout")
        .annotate(Needs, { rule: "share-protection:admin:rollouts:get" }),
    )
