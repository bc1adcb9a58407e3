/** The audit for those outside: the log as lines, its signed head, and the key to check it. */

import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, HttpApiSchema, OpenApi } from "effect/http-api"
import { Needs } from "#gateway/access.ts"
import { Streamed, Unhurried } from "#gateway/limits.ts"
import { AuditHead, AuditKey, ExportQuery, LogFigures } from "#schemas/system/audit.ts"
import { BackendUnavailable, Forbidden, Invalid, NotFound } from "#schemas/system/rejection.ts"

const operators = { roles: ["admin"] } as const

const Lines = Schema.String.pipe(HttpApiSchema.asText({ contentType: "application/x-ndjson" }))

export const AuditProofs = HttpApiGroup.make("audit-proofs")
  .annotate(OpenApi.Description, "The audit for those outside: export, signed head, and key.")
  .add(
    // A commit a line, and a manifest as the last; a line with `error` where the log went away.
    HttpApiEndpoint.get("export", "/v1/admin/audit/export", {
      query: ExportQuery,
      success: Lines,
      error: [Invalid, Forbidden, BackendUnavailable],
    })
      .annotate(OpenApi.Summary, "Export the log, or a part of it")
      .annotate(Needs, operators)
      .annotate(Streamed, true)
      // Of a part of which there is little, the log is read for long without a line.
      .annotate(Unhurried, true),
    HttpApiEndpoint.get("head", "/v1/admin/audit/head", {
      success: AuditHead,
      error: [Forbidden, NotFound, BackendUnavailable],
    })
      .annotate(OpenApi.Summary, "Read the log's newest signed head")
      .annotate(Needs, operators),
    HttpApiEndpoint.get("key", "/v1/admin/audit/key", { success: AuditKey, error: Forbidden })
      .annotate(OpenApi.Summary, "Read the key that heads are signed with")
      .annotate(Needs, operators),
    HttpApiEndpoint.get("log", "/v1/admin/log", {
      success: LogFigures,
      error: [Forbidden, BackendUnavailable],
    })
      .annotate(OpenApi.Summary, "Read how large the log is")
      .annotate(Needs, operators),
  )
