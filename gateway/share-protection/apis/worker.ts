/** Workers over HTTP. Source: document 2 §2 Worker, §4 Admin endpoints; DECISIONS, worker. */
import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, HttpApiSchema, OpenApi } from "effect/http-api"
import { Needs } from "#gateway/access.ts"
import { for_operators } from "#gateway/share-protection/apis/permission.ts"
import { listOf, type Shape } from "#gateway/share-protection/shapes/shape.ts"
import { Conflict, NotFound, rejections, when } from "#schemas/share-protection/rejection.ts"
import { Name } from "#schemas/share-protection/text.ts"
import { filterBy, page_query } from "#schemas/share-protection/views/page.ts"
import { Worker, WorkerState } from "#schemas/share-protection/worker.ts"

const params = {
  id: Schema.String.annotate({
    description: "ID of the worker: 1 to 64 letters, digits, `_` and `-`.",
    documentedAs: { type: "string", pattern: "^[A-Za-z0-9_-]{1,64}$" },
  }),
}

const about = {
  list: {
    summary: "List workers",
    description:
      "Returns all workers, oldest first, one page at a time. Retired and dead ones are " +
      "included. " +
      for_operators,
  },
  drain: {
    summary: "Drain a worker",
    description:
      "Stops the assignment of jobs to a ready worker. Its running jobs continue. The worker is " +
      `\`draining\` until you retire it. ${for_operators}`,
  },
  retire: {
    summary: "Retire a worker",
    description:
      "Retires a draining worker: it is `retiring` until its last job has ended, then `retired`, " +
      `and its machine is deleted. ${for_operators}`,
  },
}

const errors = {
  drain: rejections(NotFound, when(Conflict, "`svc.conflict`: the worker is not ready.")),
  retire: rejections(
    NotFound,
    when(Conflict, "`svc.conflict`: the worker is not draining. Drain it first."),
  ),
}
const changed = Worker.pipe(HttpApiSchema.status(202))

export const workerGroup = (shape: Shape) =>
  HttpApiGroup.make("workers")
    .annotate(OpenApi.Description, "Workers: the machines that run jobs, for operators.")
    .add(
      HttpApiEndpoint.get("list", "/v1/admin/workers", {
        query: {
          ...page_query,
          image_version: filterBy(Name, "Return only workers with this image."),
          state: filterBy(WorkerState, "Return only workers in this state."),
        },
        success: listOf(shape, "workers", Worker),
        error: rejections(),
      })
        .annotateMerge(OpenApi.annotations(about.list))
        .annotate(Needs, { rule: "share-protection:admin:workers:list" }),
      HttpApiEndpoint.post("drain", "/v1/admin/workers/:id/drain", {
        params,
        success: changed,
        error: errors.drain,
      })
        .annotateMerge(OpenApi.annotations(about.drain))
        .annotate(Needs, { rule: "share-protection:admin:workers:drain" }),
      HttpApiEndpoint.post("retire", "/v1/admin/workers/:id/retire", {
        params,
        success: changed,
        error: errors.retire,
      })
        .annotateMerge(OpenApi.annotations(about.retire))
        .annotate(Needs, { rule: "share-protection:admin:workers:retire" }),
    )
