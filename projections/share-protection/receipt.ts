/**
 * Receipts: the result of a POST with an `Idempotency-Key`, so that a repeated request gets the
 * same response.
 *
 * Source: DECISIONS, "request ids".
 */
import { Predicate, Schema } from "effect"
import type { Kysely } from "kysely"
import { parseStream } from "#events/log.ts"
import type { Projection } from "#projections/projection.ts"
import { findRow } from "#projections/share-protection/listing.ts"
import { type Stored, table } from "#projections/table.ts"

const fields = {
  /** `<command id> <aggregate>` */
  id: Schema.String,
  /** The id of the created resource. */
  resource_id: Schema.String,
  /** Fingerprint of the request, if known. */
  fingerprint: Schema.NullOr(Schema.String),
}

export interface ReceiptTables {
  readonly share_protection_receipt: Stored<Schema.Struct<typeof fields>["Type"]>
}

const receipts = table({ name: "share_protection_receipt", fields })

const births = new Set([
  "TargetCreated",
  "TargetTemplateCreated",
  "PolicyDefined",
  "BackupRequested",
  "RestoreRequested",
  "JobQueued",
  "RolloutCreated",
])

const idOf = (command_id: string, aggregate: string) => `${command_id} ${aggregate}`

/** A request without a key has a command id equal to its own id. */
export const receipt: Projection<ReceiptTables> = {
  part: "share-protection",
  create: ({ schema }) => receipts.create(schema),
  project: (event, { stream, id, commit: { commands, fingerprints, request_id } }) => {
    const command_id = commands.at(-1)
    if (request_id === undefined || command_id === undefined) return []
    if (command_id.startsWith(request_id) || !births.has(event.type)) return []
    const aggregate = parseStream(stream).name.split(".")[1] ?? ""
    // A policy's stream is its share's.
    const own = event.type === "PolicyDefined" && Predicate.hasProperty(event, "id")
    const resource_id = own ? String(event.id) : id
    const fingerprint = fingerprints?.at(-1) || null
    return [receipts.ensure({ id: idOf(command_id, aggregate), resource_id, fingerprint })]
  },
}

/** The id of the `aggregate` that the command created; undefined if none. */
export const findReceipt = (db: Kysely<ReceiptTables>, command_id: string, aggregate: string) =>
  findRow(db, receipts, idOf(command_id, aggregate))
