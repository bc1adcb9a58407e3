/** Workers over HTTP. Source: document 2 §2 Worker, §4 Admin endpoints; DECISIONS, worker. */
import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, HttpApiSchema, OpenApi } from "effect/http-api"
import { Needs } from "#gateway/access.ts"
import { listOf, type Shape } from "#gateway/share-protection/shapes/shape.ts"
import { Conflict, NotFound, rejections } from "#schemas/share-protection/rejection.ts"
import { Name } from "#schemas/share-protection/text.ts"
import { page_query } from "#schemas/share-protection/views/page.ts"
import { Worker, WorkerState } from "#schemas/share-protection/worker.ts"

const params = { id: Schema.String }
const changed = Worker.pipe(HttpApiSchema.status(202))

export const workerGroup = (shape: Shape) =>
  HttpApiGroup.make("workers")
    .annotate(OpenApi.Description, "Workers: the machines that run jobs.")
    .add(
      HttpApiEndpoint.get("list", "/v1/admin/workers", {
        query: {
          ...page_query,
          image_version: Schema.optionalKey(Name),
          state: Schema.optionalKey(WorkerState),
        },
        success: listOf(shape, "workers", Worker),
        error: rejections(),
      })
        .annotate(OpenApi.Summary, "List the workers")
        .annotate(Needs, { rule: "share-protection:admin:workers:list" }),
      HttpApiEndpoint.post("drain", "/v1/admin/workers/:id/drain", {
        params,
        success: changed,
        error: rejections(NotFound, Conflict),
      })
        .annotate(OpenApi.Summary, "Drain a worker")
        .annotate(Needs, { rule: "share-protection:admin:workers:drain" }),
      HttpApiEndpoint.post("retire", "/v1/admin/workers/:id/retire", {
        params,
        success: changed,
        error: rejections(NotFound, Conflict),
      })
        .annotate(OpenApi.Summary, "Retire a worker")
        .annotate(Needs, { rule: "share-protection:admin:workers:retire" }),
    )
