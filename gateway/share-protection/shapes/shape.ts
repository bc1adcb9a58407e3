/**
 * The shapes of the tenant surface: what each words in its own way.
 *
 * Source: document 2 §1, §2, §4 Response conventions; DECISIONS, document 2, which shape.
 */
import { Schema } from "effect"
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

type Words = Readonly<Record<string, unknown>>

/** Some of the keys' hrefs: what is absent stays as it is. */
export interface KeyRefs {
  readonly access_key?: string
  readonly secret_key?: string
}

type Values<Fields extends Schema.Struct.Fields> = Schema.Struct<Fields>["Type"]

/** Null is what the shape leaves to the template, or to nobody. */
export interface NewTarget
  extends Omit<
    Values<typeof target_fields>,
    "domain_id" | "endpoint" | "registered_by" | "vault_secret_map"
  > {
  readonly endpoint: string | null
  readonly key_refs: KeyRefs | null
}

/** What a new target has of which its body says nothing. */
export const unset = { ...nullsOf(target_fields), addressing_mode: "path" } as const

/** `key_refs` null takes both away. */
export interface TargetChanges extends Omit<Values<typeof target_changes>, "vault_secret_map"> {
  readonly key_refs?: KeyRefs | null
}

export type PolicyChanges = Values<typeof policy_changes>

/** One of target and template is null. Without a retention the template's default holds. */
export interface NewPolicy extends PolicyChanges {
  readonly name: string
  readonly share_id: ShareId
  readonly target_id: TargetId | null
  readonly target_template_id: TargetTemplateId | null
  readonly schedule: string
  readonly retention?: Retention
}

/** Without a target the policy says where to. */
export interface NewBackup {
  readonly share_id: ShareId
  readonly target_id: TargetId | null
  readonly policy_id: string | null
  readonly crash_consistent: boolean | null
}

/** A resource: how it is shown, and how a new one is asked for. */
interface Resource<Row, New> {
  readonly View: Schema.Codec<unknown, unknown>
  readonly shown: (row: Row) => Words
  readonly New: Schema.Codec<New, unknown>
}

interface Changeable<Row, New, Changes> extends Resource<Row, New> {
  readonly Patch: Schema.Codec<Patch<Changes>, unknown>
}

export interface Shape {
  readonly name: "A" | "B"
  /** The name of a collection's array. */
  readonly keyOf: (noun: string) => string
  /** What is answered when a job of a resource begins. */
  readonly begun: (noun: string, resource: object, job: object) => object
  /** A target's status in a query. */
  readonly TargetStatus: Schema.Codec<TargetStatus, string>
  readonly target: Changeable<TargetRow, NewTarget, TargetChanges>
  readonly policy: Changeable<PolicyRow, NewPolicy, PolicyChanges>
  readonly backup: Resource<BackupRow, NewBackup>
}

/** A page of a collection. */
export const listOf = ({ keyOf }: Shape, noun: string, Item: Schema.Codec<unknown, unknown>) =>
  Schema.Struct({ [keyOf(noun)]: Schema.Array(Item), pagination: Pagination })

/** What is answered when a job of a resource begins. */
export const begunOf = ({ name }: Shape, noun: string, View: Schema.Codec<unknown, unknown>) =>
  name === "A" ? Schema.Struct({ [noun]: View, job: Job }) : View

const location = {
  required: true,
  schema: { type: "string" },
  description: "Where the job is.",
}

/** Documents that a 202 names the job's place, which Shape B tells nowhere else. */
export const located = (operation: { readonly [field: string]: unknown }) => {
  const { responses } = operation
  // The library's own document: an operation's answers by their status.
  const { 202: begun, ...others } = responses as Record<string, object>
  return { ...operation, responses: { 202: { ...begun, headers: { location } }, ...others } }
}

/** Three times the largest body there is: a policy whose patterns are at their bound. */
export const body_bytes_max = 64 * 1024

/** A body has no field that it may not have, and is told all that is wrong with it. */
export const strict = { onExcessProperty: "error", errors: "all" } as const
