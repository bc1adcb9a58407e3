/** Events of a project's ledger. Stream: share-protection.ledger.<project id>. */
import { Schema } from "effect"
import { message } from "#schemas/message.ts"
import { Counted } from "#schemas/share-protection/ledger.ts"
import { Count } from "#schemas/share-protection/text.ts"

/** One more reservation, of `limit` allowed at the time. */
export const Reserved = message("Reserved", { what: Counted, limit: Count })
export const Released = message("Released", { what: Counted, count: Count })

export const LedgerEvent = Schema.Union([Reserved, Released]).pipe(Schema.toTaggedUnion("type"))
export type LedgerEvent = typeof LedgerEvent.Type
