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
  .annotate(OpenApi.Description, "The audit log: every event, with its time, actor and request.")
  .add(
    HttpApiEndpoint.get("list", "/v1/admin/audit", {
      query: AuditQuery,
      success: AuditPage,
      error: [Invalid, Forbidden, BackendUnavailable],
    })
      .annotate(OpenApi.Summary, "List events of the log")
      .annotate(
        OpenApi.Description,
        "Lists the events that match all filters, newest first. Without filters it lists all " +
          "events. `position` in the response is the log position up to which the list is " +
          "complete.",
      )
      .annotate(Needs, operators),
    // Returns the state at `at` or `position`, or the history without either.
    HttpApiEndpoint.get("aggregate", "/v1/admin/audit/:service/:aggregate/:id", {
      params: {
        service: Token.annotate({ description: "The service, such as `blob-storage`." }),
        aggregate: Token.annotate({ description: "The kind of aggregate, such as `volume`." }),
        id: Token.annotate({ description: "The id of the aggregate." }),
      },
      query: {
        at: Schema.optionalKey(InstantMs).annotateKey({
          description: "Return the state at this time, in RFC 3339. A future time is 404.",
        }),
        position: Schema.optionalKey(PositionText).annotateKey({
          description: "Return the state at this log position. One after the last is 404.",
        }),
        limit: Schema.optionalKey(PageLimit).annotateKey({
          description: "Maximum number of commits on the page.",
        }),
        marker: Schema.optionalKey(PositionText).annotateKey({
          description: "The `next_marker` of the previous page.",
        }),
      },
      success: Schema.Union([AuditState, AuditHistory]),
      error: [
        Invalid,
        Forbidden,
        NotFound.annotate({ description: "The log has no such aggregate, or had none then." }),
        BackendUnavailable,
      ],
    })
      .annotate(OpenApi.Summary, "Get the history or a past state of an aggregate")
      .annotate(
        OpenApi.Description,
        "With `at` or `position`, returns the state of the aggregate at that time or " +
          "position. Without either, returns its commits, oldest first, a page at a time. With " +
          "both it is 400.",
      )
      .annotate(Needs, operators),
  )

const Lines = Schema.String.pipe(HttpApiSchema.asText({ contentType: "application/x-ndjson" }))

export const AuditProofs = HttpApiGroup.make("audit-proofs")
  .annotate(
    OpenApi.Description,
    "Proofs for external auditors: exports of the log, its signed head and the key.",
  )
  .add(
    // One commit per line, then a manifest, or a line with `error` if the log goes offline.
    HttpApiEndpoint.get("export", "/v1/admin/audit/export", {
      query: ExportQuery,
      success: Lines,
      error: [Invalid, Forbidden, BackendUnavailable],
    })
      .annotate(OpenApi.Summary, "Export the log")
      .annotate(
        OpenApi.Description,
        "Streams the commits, one JSON line each, oldest first, at the pace of the client. " +
          "The last line is a manifest with counts, the newest hashes of the aggregates, " +
          "checkpoints and the SHA-256 of all lines before it; or an `error` if the log " +
          "cannot be read further. The response has no deadline. `almanac audit verify` " +
          "checks an export.",
      )
      .annotate(Needs, operators)
      .annotate(Streamed, true)
      // The next line may take long if the part of the log is rarely written.
      .annotate(Unhurried, true),
    HttpApiEndpoint.get("head", "/v1/admin/audit/head", {
      success: AuditHead,
      error: [
        Forbidden,
        NotFound.annotate({
          description: "No part of the log is sealed yet. See `audit.checkpoint_seconds`.",
        }),
        BackendUnavailable,
      ],
    })
      .annotate(OpenApi.Summary, "Get the signed head of the log")
      .annotate(
        OpenApi.Description,
        "Returns the newest signed head: a note that covers all commits up to a checkpoint. " +
          "Keep it to prove later that no covered commit was changed or removed.",
      )
      .annotate(Needs, operators),
    HttpApiEndpoint.get("key", "/v1/admin/audit/key", { success: AuditKey, error: Forbidden })
      .annotate(OpenApi.Summary, "Get the key of the log")
      .annotate(
        OpenApi.Description,
        "Returns the public key that signs heads. Compare it with a copy that you received " +
          "in another way.",
      )
      .annotate(Needs, operators),
    HttpApiEndpoint.get("log", "/v1/admin/log", {
      success: LogFigures,
      error: [Forbidden, BackendUnavailable],
    })
      .annotate(OpenApi.Summary, "Get the size of the log")
      .annotate(
        OpenApi.Description,
        "Returns the last position, the number of aggregates and the storage that the log " +
          "uses.",
      )
      .annotate(Needs, operators),
  )
