/**
 * A domain's own settings, applied at its next reconciliation tick.
 *
 * Source: document 2 §4 PATCH /v1/admin/domains/{domain_id}; DECISIONS, document 2, domains.
 */
import { Schema } from "effect"
import { optional } from "#schemas/fields.ts"
import { Instant } from "#schemas/instant.ts"
import { message } from "#schemas/message.ts"
import { DomainId } from "#schemas/share-protection/id.ts"
import { Count, Name } from "#schemas/share-protection/text.ts"

/** Maximum number of workers in a domain. */
const workers_max = 10_000

const Workers = Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: workers_max }))

const quota = (what: string) =>
  Schema.optionalKey(Count).annotateKey({
    description: `Maximum number of ${what} of each project.`,
    flag: `quota-${what}`,
  })

const quotas = {
  targets: quota("targets"),
  policies: quota("policies"),
  backups: quota("backups"),
}

const settings = {
  min_workers: Schema.NullOr(Workers).annotateKey({
    description: "Minimum number of workers. Null: conductor.min_workers.",
  }),
  max_workers: Schema.NullOr(Workers).annotateKey({
    description: "Maximum number of workers. Null: conductor.max_workers.",
  }),
  worker_boot_image: Schema.NullOr(Name).annotateKey({
    description: "Image of new workers. Null: conductor.worker_boot_image.",
  }),
  quotas: Schema.NullOr(Schema.Struct(quotas)).annotateKey({
    description: "Quotas of each project. If null or absent, the configured quotas apply.",
  }),
}

/** Null resets a setting to the configuration's. Quotas are always set together. */
export const domain_changes = optional(settings)

export const DomainSettings = Schema.Struct(domain_changes).annotate({
  identifier: "DomainSettings",
  description: "The settings to change. Absent ones stay unchanged.",
})
export type DomainSettings = typeof DomainSettings.Type

const progress = {
  pending: Schema.Boolean.annotateKey({
    description: "Whether a change has not been applied yet.",
  }),
  applied_at: Schema.NullOr(Instant).annotateKey({
    description: "Time at which the settings were last applied. Null if never.",
  }),
  created_at: Instant.annotateKey({ description: "Time of the first change." }),
  updated_at: Instant.annotateKey({ description: "Time of the last change." }),
}

/** Null: the configuration's value applies. */
export const domain_row = {
  id: DomainId,
  ...settings,
  /** The quotas in effect, without pending changes. */
  applied_quotas: settings.quotas,
  ...progress,
}

export const Domain = Schema.Struct({ id: DomainId, ...domain_changes, ...progress }).annotate({
  identifier: "Domain",
  description: "A domain's settings for workers and quotas.",
})
export type Domain = typeof Domain.Type

export const ConfigureDomain = message("ConfigureDomain", domain_changes)
/** Applies the configured settings. No effect without pending changes. */
export const ApplyDomain = message("ApplyDomain", {})

export const DomainCommand = Schema.Union([ConfigureDomain, ApplyDomain])
export type DomainCommand = typeof DomainCommand.Type
