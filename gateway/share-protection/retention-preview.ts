/**
 * Previews of a retention: which of a policy's backups it would keep. Nothing is changed.
 *
 * Source: beyond the document; docs/decisions/0066-restore-plans-and-undelete.md.
 */
import { Effect } from "effect"
import { retain } from "#actors/share-protection/processes/retention.ts"
import { namedSchedule } from "#gateway/share-protection/checks/reference.ts"
import { jsonResponse } from "#gateway/share-protection/responses.ts"
import { listRetainable } from "#projections/share-protection/backup.ts"
import { ShareProtectionModel } from "#projections/share-protection/blueprint.ts"
import type { PolicyRow } from "#projections/share-protection/policy.ts"
import { Conflict } from "#schemas/share-protection/rejection.ts"
import type {
  NewRetentionPreview,
  RetentionPreview,
} from "#schemas/share-protection/views/policy.ts"

/** Maximum number of backups in a preview: a project's default quota. */
const previewed_max = 10_000

const sumOf = <Row>(rows: ReadonlyArray<Row>, numberOf: (row: Row) => number | null) =>
  rows.reduce((sum, row) => sum + (numberOf(row) ?? 0), 0)

/** Returns what `retention` would keep of the policy's current backups. */
export const previewRetention = Effect.fnUntraced(function* (
  policy: PolicyRow,
  request: typeof NewRetentionPreview.Type,
) {
  const { reader } = yield* ShareProtectionModel
  const { retention, timezone = policy.timezone } = request
  yield* namedSchedule(policy.schedule, timezone)
  const rows = yield* listRetainable(reader, policy.id, previewed_max + 1)
  if (rows.length > previewed_max) {
    const detail = `The policy has more than ${previewed_max} backups.`
    return yield* new Conflict({ detail })
  }
  const known = new Map(rows.map((row) => [row.backup_id, row] as const))
  const rowOf = (id: (typeof rows)[number]["backup_id"]) => {
    const row = known.get(id)
    if (row === undefined)
      throw new Error(`Retention returned backup ${id}, which is not in its input.`)
    return row
  }
  const { keep, expire } = retain(rows, retention, timezone)
  const going = expire.map(rowOf)
  const preview: typeof RetentionPreview.Type = {
    keep: keep.map(({ backup_id, rules }) => ({
      backup_id,
      taken_at: rowOf(backup_id).taken_at,
      reasons: rowOf(backup_id).kept ? ["undeleted" as const] : rules,
    })),
    expire: going.map(({ backup_id, taken_at, bytes, stored_bytes }) => ({
      backup_id,
      taken_at,
      bytes,
      stored_bytes,
    })),
    expire_bytes: sumOf(going, ({ bytes }) => bytes),
    expire_stored_bytes: sumOf(going, ({ stored_bytes }) => stored_bytes),
  }
  return jsonResponse(preview)
})
