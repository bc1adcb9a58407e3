/**
 * A project's ledger: how much of its quotas is used.
 *
 * A limit arrives with the command, since it is configuration and may change between two of them.
 * Source: document 2 §7 svc.quota_exceeded; DECISIONS, document 2, quotas.
 */
import { Schema } from "effect"
import { message } from "#schemas/message.ts"
import { Count } from "#schemas/share-protection/text.ts"

export const Quotas = Schema.Struct({ targets: Count, policies: Count, backups: Count })
export type Quotas = typeof Quotas.Type

/** What a quota counts; `templates` are a domain's, in its own ledger. */
export const Counted = Schema.Literals(["targets", "policies", "backups", "templates"])
export type Counted = typeof Counted.Type

/** Counts one more, unless there are `limit` already. */
export const Reserve = message("Reserve", { what: Counted, limit: Count })
/** Counts so many fewer. */
export const Release = message("Release", {
  what: Counted,
  count: Schema.Int.check(Schema.isGreaterThan(0)),
})

export const LedgerCommand = Schema.Union([Reserve, Release])
export type LedgerCommand = typeof LedgerCommand.Type
