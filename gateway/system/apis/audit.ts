/** The operators' audit over HTTP. Source: DECISIONS "audit log for operators". */
import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, OpenApi } from "effect/http-api"
import { Needs } from "#gateway/access.ts"
import { Token } from "#schemas/message.ts"
import {
  AuditHistory,
  AuditPage,
  AuditQuery,
  AuditState,
  InstantMs,
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
    // With `at` or `position` the state as of then, without them the history.
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
