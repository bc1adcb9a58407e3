/** Read models for operators: how far each has come, and building one again. */
import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, HttpApiSchema, OpenApi } from "effect/http-api"
import { Needs } from "#gateway/access.ts"
import { Accepts, Streamed } from "#gateway/limits.ts"
import { Token } from "#schemas/message.ts"
import { BackendUnavailable, Forbidden, Invalid, NotFound } from "#schemas/system/rejection.ts"

const operators = { roles: ["admin"] } as const

export const ReadModelList = Schema.Struct({
  read_models: Schema.Array(
    Schema.Struct({
      /** The service whose tables they are. */
      name: Schema.String,
      /** The last commit that it shows. */
      position: Schema.Int,
      /** Positions of the log between that one and the newest that concerns it. */
      behind: Schema.Int,
    }),
  ),
})

/** The read model was built from nothing and shows the log up to `position`. */
export const Rebuilt = Schema.Struct({ name: Schema.String, position: Schema.Int })

export const ReadModelsGroup = HttpApiGroup.make("read-models")
  .annotate(OpenApi.Description, "Read models: the tables that queries read.")
  .add(
    HttpApiEndpoint.get("list", "/v1/admin/read-models", {
      success: ReadModelList,
      error: [Forbidden, BackendUnavailable],
    })
      .annotate(OpenApi.Summary, "List the read models")
      .annotate(Needs, operators),
    // With `Accept: application/x-ndjson` it says each second that it goes on, until it ends.
    HttpApiEndpoint.post("rebuild", "/v1/admin/read-models/:name/rebuild", {
      params: { name: Token },
      success: Rebuilt.pipe(HttpApiSchema.status(202)),
      error: [Invalid, Forbidden, NotFound, BackendUnavailable],
    })
      .annotate(OpenApi.Summary, "Build a read model again")
      .annotate(Needs, operators)
      .annotate(Accepts, [])
      .annotate(Streamed, true),
  )
