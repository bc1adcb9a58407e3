/**
 * The audit over HTTP: pages for operators, and a signed export for external auditors.
 *
 * Source: DECISIONS "audit log for operators".
 */
import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, HttpApiSchema, OpenApi } from "effect/http-api"
import { Needs } from "#gateway/access.ts"
import { Streamed, Unhurried } from "#gateway/limits.ts"
import { Token } from "#schemas/message.ts"
import {
  AuditHead,
  AuditHistory,
  AuditKey,
  AuditPage,
  AuditQuery,
  AuditState,
  ExportQuery,
  InstantMs,
  LogFigures,
  PageLimit,
  PositionText,
} from "#schemas/system/audit.ts"
import { BackendUnavailable, Forbidden, Invalid, NotFound } from "#schemas/system/rejection.ts"

const operators = { roles: ["admin"] } as const

export const Audit = HttpApiGroup.make("audit")
  .annotate(OpenApi.Description, "The audit of all that happened.")
  .add(
    HttpApiEndpoint.get("list", "/v1/admin/audit", {
      query: AuditQuery,
      success: AuditPage,
      error: [Invalid, Forbidden, BackendUnavailable],
    })
      .annotate(OpenApi.Summary, "List what happened")
      .annotate(Needs, operators),
    // Returns the state at `at` or `position`, or the history without either.
    HttpApiEndpoint.get("aggregate", "/v1/admin/audit/:service/:aggregate/:id", {
      params: { service: Token, aggregate: Token, id: Token },
      query: {
        at: Schema.optionalKey(InstantMs),
        position: Schema.optionalKey(PositionText),
        limit: Schema.optionalKey(PageLimit),
        marker: Schema.optionalKey(PositionText),
      },
      success: Schema.Union([AuditState, AuditHistory]),
      error: [Invalid, Forbidden, NotFound, BackendUnavailable],
    })
      .annotate(OpenApi.Summary, "Read one aggregate's history or its state")
      .annotate(Needs, operators),
  )

const Lines = Schema.String.pipe(HttpApiSchema.asText({ contentType: "application/x-ndjson" }))

export const AuditProofs = HttpApiGroup.make("audit-proofs")
  .annotate(OpenApi.Description, "The audit for those outside: export, signed head, and key.")
  .add(
    // One commit per line, then a manifest, or a line with `error` if the log goes offline.
    HttpApiEndpoint.get("export", "/v1/admin/audit/export", {
      query: ExportQuery,
      success: Lines,
      error: [Invalid, Forbidden, BackendUnavailable],
    })
      .annotate(OpenApi.Summary, "Export the log, or a part of it")
      .annotate(Needs, operators)
      .annotate(Streamed, true)
      // The next line may take long if the part of the log is rarely written.
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
