/** Protected shares and their storage. Source: document 2 §2; DECISIONS, coverage and usage. */
import { Effect, Stream } from "effect"
import { HttpApiBuilder } from "effect/http-api"
import { Shares } from "#actors/share-protection/ports/shares.ts"
import type { ShareProtectionApi } from "#gateway/share-protection/apis/api.ts"
import { ownProject } from "#gateway/share-protection/checks/ownership.ts"
import { jsonResponse } from "#gateway/share-protection/responses.ts"
import { ShareProtectionModel } from "#projections/share-protection/blueprint.ts"
import { type CoverageRow, coverageOf, usageOf } from "#projections/share-protection/usage.ts"
import type { ProjectId, ShareId } from "#schemas/share-protection/id.ts"
import type { Usage } from "#schemas/share-protection/views/usage.ts"

const nothing = { protected_shares: 0, backup_count: 0, protected_bytes: 0, stored_bytes: 0 }

const usage = Effect.fnUntraced(function* (as_of: string | undefined) {
  const { reader } = yield* ShareProtectionModel
  const project_id = yield* ownProject
  const [row] = yield* usageOf(reader, { project_id }, as_of)
  const usage_row: Usage = { ...(row ?? nothing), project_id }
  return jsonResponse(usage_row)
})

interface CoverageQuery {
  readonly project_id?: ProjectId
  readonly as_of?: string
}

/** A share known only from the share service. */
const unprotected = (share_id: ShareId, project_id: ProjectId): CoverageRow => ({
  share_id,
  project_id,
  policy_id: null,
  target_id: null,
  protected: false,
  backup_count: 0,
  last_backup_at: null,
  last_proven_restorable: null,
  restore_test_failure: null,
})

/** Current and past protection; a query for now adds the remaining shares of the share service. */
const coverage = Effect.fnUntraced(function* ({ project_id, as_of }: CoverageQuery) {
  const { reader } = yield* ShareProtectionModel
  const known = new Map(
    (yield* coverageOf(reader, as_of)).map((row) => [row.share_id, row] as const),
  )
  if (as_of === undefined) {
    const { list } = yield* Shares
    yield* Stream.runForEach(list, ({ id, project_id }) =>
      Effect.sync(() => {
        if (!known.has(id)) known.set(id, unprotected(id, project_id))
      }),
    )
  }
  const rows = [...known.values()].filter(
    (row) => project_id === undefined || row.project_id === project_id,
  )
  rows.sort((one, other) => (one.share_id < other.share_id ? -1 : 1))
  return jsonResponse({ coverage: rows, pagination: { count: rows.length } })
})

export const usageHandlers = (api: ShareProtectionApi) =>
  HttpApiBuilder.group(api, "usage", (handlers) =>
    handlers.handle("get", ({ query }) => usage(query.as_of)),
  )

export const coverageHandlers = (api: ShareProtectionApi) =>
  HttpApiBuilder.group(api, "coverage", (handlers) =>
    handlers.handle("list", ({ query }) => coverage(query)),
  )
