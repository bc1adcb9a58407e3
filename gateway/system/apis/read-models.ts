/** Read models for operators: their positions, rebuilds and checks. */
import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, HttpApiSchema, OpenApi } from "effect/http-api"
import { Needs } from "#gateway/access.ts"
import { Accepts, KeyNotNeeded, Streamed } from "#gateway/limits.ts"
import { Token } from "#schemas/message.ts"
import { BackendUnavailable, Forbidden, Invalid, NotFound } from "#schemas/system/rejection.ts"

const operators = { roles: ["admin"] } as const

export const ReadModelList = Schema.Struct({
  read_models: Schema.Array(
    Schema.Struct({
      /** The service that owns the tables. */
      name: Schema.String,
      /** The last commit that the read model shows. */
      position: Schema.Int,
      /** How many positions it is behind the newest commit that concerns it. */
      behind: Schema.Int,
    }),
  ),
})

/** The read model was rebuilt and shows the log up to `position`. */
export const Rebuilt = Schema.Struct({ name: Schema.String, position: Schema.Int })

/** Differences between a read model and its rebuild, which both show `position`. */
export const ReadModelDifference = Schema.Struct({
  name: Schema.String,
  position: Schema.Int,
  /** Number of tables compared, without those of live values. */
  tables: Schema.Int,
  /** Number of differing rows; the response contains the first 100. */
  count: Schema.Int,
  rows: Schema.Array(
    Schema.Struct({
      table: Schema.String,
      /** The whole row if the table has no key. */
      key: Schema.Record(Schema.String, Schema.Json),
      /** `extra` is only in the read model, `missing` only in the rebuilt one. */
      kind: Schema.Literals(["changed", "extra", "missing"]),
      columns: Schema.Array(
        Schema.Struct({ column: Schema.String, kept: Schema.Json, rebuilt: Schema.Json }),
      ),
    }),
  ),
})
export type ReadModelDifference = typeof ReadModelDifference.Type

export const ReadModelsGroup = HttpApiGroup.make("read-models")
  .annotate(OpenApi.Description, "Read models: the tables that queries read.")
  .add(
    HttpApiEndpoint.get("list", "/v1/admin/read-models", {
      success: ReadModelList,
      error: [Forbidden, BackendUnavailable],
    })
      .annotate(OpenApi.Summary, "List the read models")
      .annotate(Needs, operators),
    // With `Accept: application/x-ndjson` it reports progress every second until it ends.
    HttpApiEndpoint.post("rebuild", "/v1/admin/read-models/:name/rebuild", {
      params: { name: Token },
      success: Rebuilt.pipe(HttpApiSchema.status(202)),
      error: [Invalid, Forbidden, NotFound, BackendUnavailable],
    })
      .annotate(KeyNotNeeded, "The log decides what a read model shows.")
      .annotate(OpenApi.Summary, "Build a read model again")
      .annotate(Needs, operators)
      .annotate(Accepts, [])
      .annotate(Streamed, true),
    // Like a rebuild, it reports progress every second if the client accepts lines.
    HttpApiEndpoint.post("difference", "/v1/admin/read-models/:name/difference", {
      params: { name: Token },
      success: ReadModelDifference,
      error: [Invalid, Forbidden, NotFound, BackendUnavailable],
    })
      .annotate(KeyNotNeeded, "It changes nothing.")
      .annotate(OpenApi.Summary, "Compare a read model with its rebuild")
      .annotate(Needs, operators)
      .annotate(Accepts, [])
      .annotate(Streamed, true),
  )
