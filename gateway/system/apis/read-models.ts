/** Read models for operators: their positions, rebuilds and checks. */
import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, HttpApiSchema, OpenApi } from "effect/http-api"
import { Needs } from "#gateway/access.ts"
import { Accepts, KeyNotNeeded, Streamed } from "#gateway/limits.ts"
import { Token } from "#schemas/message.ts"
import { BackendUnavailable, Forbidden, Invalid, NotFound } from "#schemas/system/rejection.ts"

const Name = Token.annotate({ description: "Name of the read model, such as `share-protection`." })

const Unknown = NotFound.annotate({ description: "This process has no such read model." })

const operators = { roles: ["admin"] } as const

export const ReadModelList = Schema.Struct({
  read_models: Schema.Array(
    Schema.Struct({
      name: Schema.String.annotateKey({ description: "The service that owns the tables." }),
      position: Schema.Int.annotateKey({
        description: "Position of the last commit that the read model includes.",
      }),
      behind: Schema.Int.annotateKey({
        description: "Number of positions between it and the newest commit that concerns it.",
      }),
    }),
  ).annotate({ description: "The read models, ordered by name." }),
})

/** The read model was rebuilt and shows the log up to `position`. */
export const Rebuilt = Schema.Struct({
  name: Schema.String.annotate({ description: "Name of the read model." }),
  position: Schema.Int.annotate({ description: "The log position that it includes." }),
})

/** Differences between a read model and its rebuild, which both show `position`. */
export const ReadModelDifference = Schema.Struct({
  name: Schema.String.annotateKey({ description: "Name of the read model." }),
  position: Schema.Int.annotateKey({ description: "The log position that both include." }),
  tables: Schema.Int.annotateKey({
    description: "Number of tables compared, without those of live values.",
  }),
  count: Schema.Int.annotateKey({ description: "Number of rows that differ." }),
  rows: Schema.Array(
    Schema.Struct({
      table: Schema.String.annotate({ description: "Name of the table." }),
      key: Schema.Record(Schema.String, Schema.Json).annotate({
        description: "The key of the row, or the whole row if the table has no key.",
      }),
      kind: Schema.Literals(["changed", "extra", "missing"]).annotate({
        description: "`extra`: only in the read model. `missing`: only in the rebuild.",
      }),
      columns: Schema.Array(
        Schema.Struct({
          column: Schema.String.annotate({ description: "Name of the column." }),
          kept: Schema.Json.annotate({ description: "Its value in the read model." }),
          rebuilt: Schema.Json.annotate({ description: "Its value in the rebuild." }),
        }),
      ).annotate({ description: "The columns that differ." }),
    }),
  ).annotate({ description: "The first 100 rows that differ." }),
})
export type ReadModelDifference = typeof ReadModelDifference.Type

export const ReadModelsGroup = HttpApiGroup.make("read-models")
  .annotate(OpenApi.Description, "Read models: the tables that queries read, which follow the log.")
  .add(
    HttpApiEndpoint.get("list", "/v1/admin/read-models", {
      success: ReadModelList,
      error: [Forbidden, BackendUnavailable],
    })
      .annotate(OpenApi.Summary, "List the read models")
      .annotate(
        OpenApi.Description,
        "Returns the position of each read model and how far it is behind the log, ordered " +
          "by name.",
      )
      .annotate(Needs, operators),
    // With `Accept: application/x-ndjson` it reports progress every second until it ends.
    HttpApiEndpoint.post("rebuild", "/v1/admin/read-models/:name/rebuild", {
      params: { name: Name },
      success: Rebuilt.pipe(HttpApiSchema.status(202)),
      error: [Invalid, Forbidden, Unknown, BackendUnavailable],
    })
      .annotate(KeyNotNeeded, "The log decides what a read model shows.")
      .annotate(OpenApi.Summary, "Rebuild a read model")
      .annotate(
        OpenApi.Description,
        "Rebuilds the read model from the log and responds once it is current, which may " +
          "take minutes. Until then queries use the old one. With `Accept: " +
          "application/x-ndjson` the response has a line of progress each second and the " +
          "result on the last line.",
      )
      .annotate(Needs, operators)
      .annotate(Accepts, [])
      .annotate(Streamed, true),
    // Like a rebuild, it reports progress every second if the client accepts lines.
    HttpApiEndpoint.post("difference", "/v1/admin/read-models/:name/difference", {
      params: { name: Name },
      success: ReadModelDifference,
      error: [Invalid, Forbidden, Unknown, BackendUnavailable],
    })
      .annotate(KeyNotNeeded, "It changes nothing.")
      .annotate(OpenApi.Summary, "Compare a read model with its rebuild")
      .annotate(
        OpenApi.Description,
        "Builds a second read model from the log and returns the rows in which they differ: " +
          "the first 100, and their number. The read model is not changed. With `Accept: " +
          "application/x-ndjson` the response has a line of progress each second and the " +
          "result on the last line.",
      )
      .annotate(Needs, operators)
      .annotate(Accepts, [])
      .annotate(Streamed, true),
  )
