/** Shape B: buckets are registered against a domain's templates. Source: document 2 §1, §2, §4. */
import { Schema, SchemaGetter, Struct } from "effect"
import { mappedBody, patchOf } from "#gateway/share-protection/patch.ts"
import {
  type KeyRefs,
  type Shape,
  target_defaults,
} from "#gateway/share-protection/shapes/shape.ts"
import { backupView, policyView } from "#gateway/share-protection/view.ts"
import { TargetStatus } from "#schemas/share-protection/target.ts"
import { BackupB, NewBackupB } from "#schemas/share-protection/views/backup.ts"
import { NewPolicyB, PolicyB, PolicyChanges } from "#schemas/share-protection/views/policy.ts"
import {
  hidden_b,
  NewTargetB,
  names_b,
  StatusB,
  TargetB,
  TargetChangesB,
} from "#schemas/share-protection/views/target.ts"

const statuses = { pending: "enrolling", available: "available", error: "error" } as const

interface Changes {
  readonly s3_access_key_ref?: string
  readonly s3_secret_key_ref?: string
  readonly engine_key_trust_id?: string | null
}

const keyRefsOf = ({ s3_access_key_ref, s3_secret_key_ref }: Changes): KeyRefs => ({
  ...(s3_access_key_ref === undefined ? {} : { access_key: s3_access_key_ref }),
  ...(s3_secret_key_ref === undefined ? {} : { secret_key: s3_secret_key_ref }),
})

const key_forms = ["s3_access_key_ref", "s3_secret_key_ref"] as const

export const shape_b: Shape = {
  name: "B",
  keyOf: () => "items",
  acceptedBody: (_noun, resource) => resource,
  TargetStatus: StatusB.pipe(
    Schema.decodeTo(TargetStatus, {
      decode: SchemaGetter.transform((status) => (status === "enrolling" ? "pending" : status)),
      encode: SchemaGetter.transform((status) => statuses[status]),
    }),
  ),
  target: {
    View: TargetB,
    toView: (row) => ({
      ...Struct.renameKeys(Struct.omit(row, hidden_b), names_b),
      status: statuses[row.status],
    }),
    New: mappedBody(NewTargetB, ({ bucket_name: bucket, ...body }) => ({
      ...target_defaults,
      name: bucket,
      ...Struct.omit(body, key_forms),
      endpoint: null,
      bucket,
      key_refs: keyRefsOf(body),
    })),
    Patch: patchOf(TargetChangesB, TargetB, (changes) => {
      const { engine_key_trust_id: trust_id } = changes
      const key_refs = keyRefsOf(changes)
      return {
        ...(trust_id === undefined ? {} : { trust_id }),
        ...Struct.omit(changes, [...key_forms, "engine_key_trust_id"]),
        ...(Object.keys(key_refs).length === 0 ? {} : { key_refs }),
      }
    }),
  },
  policy: {
    View: PolicyB,
    toView: (row) => ({ ...policyView(row), target_template_id: row.target_template_id }),
    New: mappedBody(NewPolicyB, (body) => ({ ...body, target_id: null })),
    Patch: patchOf(PolicyChanges, PolicyB, (changes) => changes),
  },
  backup: {
    View: BackupB,
    toView: (row) => ({ ...backupView(row), target_bucket_id: row.target_id }),
    New: mappedBody(NewBackupB, ({ share_id, policy_id, crash_consistent }) => ({
      share_id,
      target_id: null,
      policy_id,
      crash_consistent: crash_consistent ?? null,
    })),
  },
}
