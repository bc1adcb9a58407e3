/** Events of a domain's settings. Stream: share-protection.domain.<id>. */
import { Schema } from "effect"
import { message } from "#schemas/message.ts"
import { domain_changes } from "#schemas/share-protection/domain.ts"

/** Contains only the changed fields, which apply from the next tick on. */
export const DomainConfigured = message("DomainConfigured", domain_changes)
export const DomainApplied = message("DomainApplied", {})

export const DomainEvent = Schema.Union([DomainConfigured, DomainApplied]).pipe(
  Schema.toTaggedUnion("type"),
)
export type DomainEvent = typeof DomainEvent.Type
