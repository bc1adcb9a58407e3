/** Shape A: a target carries its endpoint and bucket. Source: document 2 §1, §2, §4. */
import { Struct } from "effect"
import { mappedBody, patchOf } from "#gateway/share-protection/patch.ts"
import { type Shape, target_defaults } from "#gateway/share-protection/shapes/shape.ts"
import { backupView, policyView } from "#gateway/share-protection/view.ts"
import { TargetStatus } from "#schemas/share-protection/target.ts"
import { BackupA, NewBackupA } from "#schemas/share-protection/views/backup.ts"
import { NewPolicyA, PolicyA, PolicyChanges } from "#schemas/share-protection/views/policy.ts"
import {
  hidden_a,
  NewTargetA,
  names_a,
  TargetA,
  TargetChangesA,
} from "#schemas/share-protection/views/target.ts"

interface Secrets {
  readonly vault_secret_map?: { readonly access_key: string; readonly secret_key: string } | null
  readonly vault_secret_refs?: readonly [string, string]
}

/** Either form of the keys' hrefs; undefined if neither is present. */
const keyRefsOf = ({ vault_secret_map, vault_secret_refs: refs }: Secrets) =>
  refs === undefined ? vault_secret_map : { access_key: refs[0], secret_key: refs[1] }

const secret_forms = ["vault_secret_map", "vault_secret_refs"] as const

export const shape_a: Shape = {
  name: "A",
  keyOf: (noun) => noun,
  acceptedBody: (noun, resource, job) => ({ [noun]: resource, job }),
  TargetStatus,
  target: {
    View: TargetA,
    toView: (row) => {
      const { access_key_ref: access_key, secret_key_ref: secret_key } = row
      const is_whole = access_key !== null && secret_key !== null
      return {
        ...Struct.renameKeys(Struct.omit(row, hidden_a), names_a),
        vault_secret_map: is_whole ? { access_key, secret_key } : null,
      }
    },
    New: mappedBody(NewTargetA, (body) => ({
      ...target_defaults,
      ...Struct.omit(body, secret_forms),
      key_refs: keyRefsOf(body) ?? null,
    })),
    Patch: patchOf(TargetChangesA, TargetA, (changes) => {
      const key_refs = keyRefsOf(changes)
      const rest = Struct.omit(changes, secret_forms)
      return key_refs === undefined ? rest : { ...rest, key_refs }
    }),
  },
  policy: {
    View: PolicyA,
    toView: (row) => ({ ...policyView(row), target_id: row.target_id }),
    New: mappedBody(NewPolicyA, (body) => ({ ...body, target_template_id: null })),
    Patch: patchOf(PolicyChanges, PolicyA, (changes) => changes),
  },
  backup: {
    View: BackupA,
    toView: (row) => ({ ...backupView(row), target_id: row.target_id }),
    New: mappedBody(NewBackupA, ({ share_id, target_id, policy_id, crash_consistent }) => ({
      share_id,
      target_id: target_id ?? null,
      policy_id: policy_id ?? null,
      crash_consistent: crash_consistent ?? null,
    })),
  },
}
