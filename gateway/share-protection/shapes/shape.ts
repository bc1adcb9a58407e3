/**
 * The shapes of the tenant API: everything that differs between them.
 *
 * Source: document 2 §1, §2, §4 Response conventions; DECISIONS, document 2, which shape.
 */
import { Schema } from "effect"
import { HttpApiSchema } from "effect/http-api"
import type { Patch } from "#gateway/share-protection/patch.ts"
import type { BackupRow } from "#projections/share-protection/backup.ts"
import type { PolicyRow } from "#projections/share-protection/policy.ts"
import { nullsOf } from "#schemas/fields.ts"
import type { ShareId, TargetId, TargetTemplateId } from "#schemas/share-protection/id.ts"
import type { policy_changes } from "#schemas/share-protection/policy.ts"
import type { Retention } from "#schemas/share-protection/retention.ts"
import {
  type TargetRow,
  type TargetStatus,
  type target_changes,
  target_fields,
} from "#schemas/share-protection/target.ts"
import { Job } from "#schemas/share-protection/views/job.ts"
import { Pagination } from "#schemas/share-protection/views/page.ts"

type Json = Readonly<Record<string, unknown>>

/** Hrefs of the keys; an absent one is unchanged. */
export interface KeyRefs {
  readonly access_key?: string
  readonly secret_key?: string
}

type Values<Fields extends Schema.Struct.Fields> = Schema.Struct<Fields>["Type"]

/** Null fields come from the template, or stay unset. */
export interface NewTarget
  extends Omit<
    Values<typeof target_fields>,
    "domain_id" | "endpoint" | "registered_by" | "vault_secret_map"
  > {
  readonly endpoint: string | null
  readonly key_refs: KeyRefs | null
}

/** Defaults of a new target's optional fields. */
export const target_defaults = { ...nullsOf(target_fields), addressing_mode: "path" } as const

/** A null `key_refs` removes both. */
export interface TargetChanges extends Omit<Values<typeof target_changes>, "vault_secret_map"> {
  readonly key_refs?: KeyRefs | null
}

export type PolicyChanges = Values<typeof policy_changes>

/** Either target or template is null. Without a retention the template's default applies. */
export interface NewPolicy extends PolicyChanges {
  readonly name: string
  readonly share_id: ShareId
  readonly target_id: TargetId | null
  readonly target_template_id: TargetTemplateId | null
  readonly schedule: string
  readonly retention?: Retention
}

/** Without a target the policy determines it. */
export interface NewBackup {
  readonly share_id: ShareId
  readonly target_id: TargetId | null
  readonly policy_id: string | null
  readonly crash_consistent: boolean | null
}

/** A resource: its view, and the body that creates it. */
interface Resource<Row, New> {
  readonly View: Schema.Codec<unknown, unknown>
  readonly toView: (row: Row) => Json
  readonly New: Schema.Codec<New, unknown>
}

interface Changeable<Row, New, Changes> extends Resource<Row, New> {
  readonly Patch: Schema.Codec<Patch<Changes>, unknown>
}

export interface Shape {
  readonly name: "A" | "B"
  /** The name of a collection's array. */
  readonly keyOf: (noun: string) => string
  /** The response body when a resource's job has started. */
  readonly acceptedBody: (noun: string, resource: object, job: object) => object
  /** A target's status in a query. */
  readonly TargetStatus: Schema.Codec<TargetStatus, string>
  readonly target: Changeable<TargetRow, NewTarget, TargetChanges>
  readonly policy: Changeable<PolicyRow, NewPolicy, PolicyChanges>
  readonly backup: Resource<BackupRow, NewBackup>
}

/** A page of a collection. */
export const listOf = ({ keyOf }: Shape, noun: string, Item: Schema.Codec<unknown, unknown>) =>
  Schema.Struct({
    [keyOf(noun)]: Schema.Array(Item).annotateKey({ description: `The ${noun} of this page.` }),
    pagination: Pagination,
  }).annotate({ description: `A page of ${noun}.` })

/** The response schema when a resource's job has started. */
export const acceptedOf = ({ name }: Shape, noun: string, View: Schema.Codec<unknown, unknown>) =>
  name === "A"
    ? Schema.Struct({ [noun]: View, job: Job }).annotate({
        description: `The ${noun}, and the job that was started.`,
      })
    : View

/** A 204 response. */
export const noContent = (description: string) => HttpApiSchema.NoContent.annotate({ description })

const location = {
  required: true,
  schema: { type: "string" },
  description: "Path of the job: `/v1/jobs/<id>`.",
}

/** Documents the location header of a 202, the only place where Shape B returns the job. */
export const withJobLocation = (operation: { readonly [field: string]: unknown }) => {
  const { responses } = operation
  // The library's own document: an operation's responses by status.
  const { 202: accepted, ...others } = responses as Record<string, object>
  return { ...operation, responses: { 202: { ...accepted, headers: { location } }, ...others } }
}

/** Three times the largest valid body: a policy with the maximum number of patterns. */
export const body_bytes_max = 64 * 1024

/** Rejects unknown fields, and reports all errors of a body. */
export const strict = { onExcessProperty: "error", errors: "all" } as const
