/**
 * A project's ledger: how much of its quotas is used.
 *
 * Limits arrive with commands, because they are configuration and may change at any time. Source:
 * document 2 §7 svc.quota_exceeded; DECISIONS, document 2, quotas.
 */
import { Schema } from "effect"
import { message } from "#schemas/message.ts"
import { Count } from "#schemas/share-protection/text.ts"

export const Quotas = Schema.Struct({ targets: Count, policies: Count, backups: Count })
export type Quotas = typeof Quotas.Type

/** The resources that quotas count; `templates` belong to a domain's own ledger. */
export const Counted = Schema.Literals(["targets", "policies", "backups", "templates"])
export type Counted = typeof Counted.Type

/** Counts one more, unless there are already `limit`. */
export const Reserve = message("Reserve", { what: Counted, limit: Count })
/** Subtracts from the count. */
export const Release = message("Release", {
  what: Counted,
  count: Schema.Int.check(Schema.isGreaterThan(0)),
})

export const LedgerCommand = Schema.Union([Reserve, Release])
export type LedgerCommand = typeof LedgerCommand.Type
