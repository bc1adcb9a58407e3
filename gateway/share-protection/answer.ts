/** Answers: a resource, a page of them, or one whose job has begun. Source: document 2 §4. */
import { Effect } from "effect"
import { HttpServerResponse } from "effect/http"
import type { LiveWorkers } from "#actors/share-protection/ports/live-workers.ts"
import { Deployment } from "#gateway/share-protection/deployment.ts"
import type { Made } from "#gateway/share-protection/sending.ts"
import { jobView } from "#gateway/share-protection/view.ts"
import { ShareProtectionModel } from "#projections/share-protection/blueprint.ts"
import { findJob } from "#projections/share-protection/job.ts"
import { JobId } from "#schemas/share-protection/id.ts"
import { NotFound } from "#schemas/share-protection/rejection.ts"

type Headers = Readonly<Record<string, string>>

/** By which position any reader sees what was done. */
const at = (position: number): Headers => ({ "x-almanac-position": String(position) })

export const answer = (
  body: object,
  { status = 200, position }: { readonly status?: number; readonly position?: number } = {},
) =>
  HttpServerResponse.jsonUnsafe(body, {
    status,
    headers: position === undefined ? {} : at(position),
  })

export const nothing = (position: number) => HttpServerResponse.empty({ headers: at(position) })

interface Listed<Row> {
  readonly rows: ReadonlyArray<Row>
  readonly next_marker: string | null
}

/** A page of a collection, each row as `shown` shows it. */
export const page = Effect.fnUntraced(function* <Row, R>(
  noun: string,
  { rows, next_marker }: Listed<Row>,
  limit: number,
  shown: (row: Row) => Effect.Effect<object, never, R>,
) {
  const { shape } = yield* Deployment
  const items = yield* Effect.forEach(rows, shown)
  return answer({
    [shape.keyOf(noun)]: items,
    pagination: { limit, count: items.length, next_marker },
  })
})

/** 202: the resource, and the job that has begun, in the body or by its place. */
export const begun = Effect.fnUntraced(function* (
  noun: string,
  resource: object,
  job_id: string,
  { position }: Pick<Made, "position">,
): Effect.fn.Return<
  HttpServerResponse.HttpServerResponse,
  NotFound,
  Deployment | ShareProtectionModel | LiveWorkers
> {
  const { shape } = yield* Deployment
  const { db } = yield* ShareProtectionModel
  const row = yield* findJob(db, JobId.make(job_id))
  // Its target was deleted since, and the job's row with it.
  if (row === undefined) return yield* new NotFound({ detail: "No such job." })
  const headers = { ...at(position), location: `/v1/jobs/${job_id}` }
  const body = shape.begun(noun, resource, yield* jobView(row))
  return HttpServerResponse.jsonUnsafe(body, { status: 202, headers })
})
