/**
 * Responses: a resource, a page of resources, or a resource whose job has started. Source: document
 * 2 §4.
 */
import { Effect } from "effect"
import { HttpServerResponse } from "effect/http"
import type { LiveWorkers } from "#actors/share-protection/ports/live-workers.ts"
import type { Created } from "#gateway/share-protection/commands.ts"
import { Deployment } from "#gateway/share-protection/deployment.ts"
import { jobView } from "#gateway/share-protection/view.ts"
import { ShareProtectionModel } from "#projections/share-protection/blueprint.ts"
import { findJob } from "#projections/share-protection/job.ts"
import { JobId } from "#schemas/share-protection/id.ts"
import { NotFound } from "#schemas/share-protection/rejection.ts"

type Headers = Readonly<Record<string, string>>

/** The position at which every reader sees the change. */
const positionHeaders = (position: number): Headers => ({ "x-almanac-position": String(position) })

export const jsonResponse = (
  body: object,
  { status = 200, position }: { readonly status?: number; readonly position?: number } = {},
) =>
  HttpServerResponse.jsonUnsafe(body, {
    status,
    headers: position === undefined ? {} : positionHeaders(position),
  })

export const emptyResponse = (position: number) =>
  HttpServerResponse.empty({ headers: positionHeaders(position) })

interface Listed<Row> {
  readonly rows: ReadonlyArray<Row>
  readonly next_marker: string | null
}

/** A page of a collection; `toView` converts each row. */
export const pageResponse = Effect.fnUntraced(function* <Row, R>(
  noun: string,
  { rows, next_marker }: Listed<Row>,
  limit: number,
  toView: (row: Row) => Effect.Effect<object, never, R>,
) {
  const { shape } = yield* Deployment
  const items = yield* Effect.forEach(rows, toView)
  return jsonResponse({
    [shape.keyOf(noun)]: items,
    pagination: { limit, count: items.length, next_marker },
  })
})

/** 202: the resource, and its job in the body or in the location header. */
export const acceptedResponse = Effect.fnUntraced(function* (
  noun: string,
  resource: object,
  job_id: string,
  { position }: Pick<Created, "position">,
): Effect.fn.Return<
  HttpServerResponse.HttpServerResponse,
  NotFound,
  Deployment | ShareProtectionModel | LiveWorkers
> {
  const { shape } = yield* Deployment
  const { db } = yield* ShareProtectionModel
  const row = yield* findJob(db, JobId.make(job_id))
  // Its target has been deleted since, together with the job's row.
  if (row === undefined) return yield* new NotFound({ detail: "No such job." })
  const headers = { ...positionHeaders(position), location: `/v1/jobs/${job_id}` }
  const body = shape.acceptedBody(noun, resource, yield* jobView(row))
  return HttpServerResponse.jsonUnsafe(body, { status: 202, headers })
})
