import { describe } from "@effect/vitest"
import { Target } from "#actors/share-protection/target.ts"
import {
  TargetEnrolled,
  TargetEnrollmentFailed,
  TargetLocksExtended,
  TargetPreflighted,
  TargetUpdated,
} from "#events/share-protection/target.ts"
import {
  CheckTargetReadable,
  CompleteEnrollment,
  CompleteFormatUpgrade,
  CreateTarget,
  DeleteTarget,
  DeregisterTargetBackups,
  DeregisterTargetPolicy,
  FailEnrollment,
  FailFormatUpgrade,
  RecordPreflight,
  RecordTargetLocks,
  RecordTargetUsage,
  RegisterTargetBackup,
  RegisterTargetPolicy,
  RestartEnrollment,
  StartFormatUpgrade,
  UpdateTarget,
} from "#schemas/share-protection/target.ts"
import {
  at,
  capabilities,
  enrolled,
  job_id,
  later,
  other_job_id,
  secretRef,
  target,
  usage_stats,
} from "../world/share-protection/samples.ts"
import {
  backup_registered,
  completed,
  created,
  deleted,
  deregistered,
  extended,
  failed,
  measured,
  policy_deregistered,
  policy_registered,
  preflighted,
  reason,
  renamed,
  restarted,
  states,
  upgrade_failed,
  upgrade_job_id,
  upgrade_started,
  upgraded,
} from "../world/share-protection/target-samples.ts"
import { everyState } from "../world/state-table.ts"

const gone = { absent: "svc.not_found", deleted: "svc.not_found" } as const
const conflict = "svc.conflict"
const locked = "svc.repository_locked"
const a_moment_before_later = new Date(Date.parse(later) - 1).toISOString()
const dependents = "svc.target_has_dependents"
const upgrading = { upgrading: locked, "holding a backup, upgrading": locked } as const

/** The same outcome in each state in which the target is already enrolled. */
const enrolledAlready = <const Outcome>(outcome: Outcome) => ({
  available: outcome,
  upgrading: outcome,
  upgraded: outcome,
  "not upgraded": outcome,
  "referenced by a policy": outcome,
  "holding two backups": outcome,
  "holding a locked backup": outcome,
  "holding a backup, upgrading": outcome,
})

/** The same change in each state except deleted. */
const changes = [
  ["its name", { name: "Another" }],
  ["its trust", { trust_id: null }],
  ["its secrets", { vault_secret_map: { access_key: secretRef(8), secret_key: secretRef(9) } }],
  ["its authority", { ca_cert_ref: secretRef(7) }],
  ["its region", { region: "south" }],
] as const

const { endpoint, bucket, addressing_mode } = target
const place = { endpoint, bucket, addressing_mode }
const moved_reason = "The target was moved to another bucket during its enrollment."

const moves = [
  ["its endpoint", { endpoint: "https://s3.example.net" }],
  ["its bucket", { bucket: "another-bucket" }],
  ["its addressing mode", { addressing_mode: "virtual" }],
] as const

describe("a target", () => {
  everyState(Target, states, {
    CreateTarget: [
      { command: CreateTarget.make(target), in: { absent: [created] }, otherwise: conflict },
    ],
    UpdateTarget: [
      ...changes.map(([what, change]) => ({
        with: `of ${what}`,
        command: UpdateTarget.make(change),
        in: gone,
        otherwise: [TargetUpdated.make(change)],
      })),
      ...moves.map(([what, move]) => ({
        with: `of ${what}`,
        command: UpdateTarget.make(move),
        in: { ...gone, ...enrolledAlready(conflict) },
        otherwise: [TargetUpdated.make(move)],
      })),
      {
        with: "to what it is",
        command: UpdateTarget.make({
          name: target.name,
          endpoint: target.endpoint,
          bucket: target.bucket,
          trust_id: target.trust_id,
          vault_secret_map: { ...target.vault_secret_map },
          ca_cert_ref: null,
          addressing_mode: "path",
          region: null,
        }),
        in: gone,
        otherwise: [],
      },
      {
        with: "of its name, the bucket unchanged",
        command: UpdateTarget.make({ name: "Another", bucket: target.bucket }),
        in: gone,
        otherwise: [renamed],
      },
      {
        with: "of its name and its bucket",
        command: UpdateTarget.make({ name: "Another", bucket: "another-bucket" }),
        in: { ...gone, ...enrolledAlready(conflict) },
        otherwise: [TargetUpdated.make({ name: "Another", bucket: "another-bucket" })],
      },
      { with: "of nothing", command: UpdateTarget.make({}), in: gone, otherwise: [] },
    ],
    CompleteEnrollment: [
      {
        command: CompleteEnrollment.make({ job_id, ...enrolled }),
        in: { ...gone, pending: [completed] },
        otherwise: [],
      },
      {
        with: "where the target is",
        command: CompleteEnrollment.make({ job_id, ...enrolled, place }),
        in: { ...gone, pending: [completed] },
        otherwise: [],
      },
      ...moves.map(([what, move]) => ({
        with: `where the target was before a change of ${what}`,
        command: CompleteEnrollment.make({ job_id, ...enrolled, place: { ...place, ...move } }),
        in: { ...gone, pending: [TargetEnrollmentFailed.make({ job_id, reason: moved_reason })] },
        otherwise: [],
      })),
      {
        with: "by another job",
        command: CompleteEnrollment.make({ job_id: other_job_id, ...enrolled }),
        in: {
          ...gone,
          "pending again": [TargetEnrolled.make({ job_id: other_job_id, ...enrolled })],
        },
        otherwise: [],
      },
    ],
    FailEnrollment: [
      {
        command: FailEnrollment.make({ job_id, reason }),
        in: { ...gone, pending: [failed] },
        otherwise: [],
      },
      {
        with: "by another job",
        command: FailEnrollment.make({ job_id: other_job_id, reason }),
        in: {
          ...gone,
          "pending again": [TargetEnrollmentFailed.make({ job_id: other_job_id, reason })],
        },
        otherwise: [],
      },
    ],
    RestartEnrollment: [
      {
        command: RestartEnrollment.make({ job_id: other_job_id }),
        in: { ...gone, error: [restarted] },
        otherwise: conflict,
      },
    ],
    RecordPreflight: [
      {
        command: RecordPreflight.make({ capabilities, reason: null, at: later }),
        in: gone,
        otherwise: [preflighted],
      },
      {
        with: "that failed",
        command: RecordPreflight.make({ capabilities: null, reason, at: later }),
        in: gone,
        otherwise: [TargetPreflighted.make({ capabilities: null, reason, at: later })],
      },
    ],
    RegisterTargetPolicy: [
      { command: RegisterTargetPolicy.make({}), in: gone, otherwise: [policy_registered] },
    ],
    DeregisterTargetPolicy: [
      {
        command: DeregisterTargetPolicy.make({}),
        in: { ...gone, "referenced by a policy": [policy_deregistered] },
        otherwise: [],
      },
    ],
    RegisterTargetBackup: [
      {
        command: RegisterTargetBackup.make({}),
        in: { ...gone, ...upgrading },
        otherwise: [backup_registered],
      },
    ],
    DeregisterTargetBackups: [
      {
        with: "of one",
        command: DeregisterTargetBackups.make({ count: 1 }),
        in: {
          ...gone,
          "holding two backups": [deregistered(1)],
          "holding a locked backup": [deregistered(1)],
          "holding a backup, upgrading": [deregistered(1)],
        },
        otherwise: [],
      },
      {
        with: "of more than there are",
        command: DeregisterTargetBackups.make({ count: 3 }),
        in: {
          ...gone,
          "holding two backups": [deregistered(2)],
          "holding a locked backup": [deregistered(1)],
          "holding a backup, upgrading": [deregistered(1)],
        },
        otherwise: [],
      },
      ...(
        [
          [a_moment_before_later, conflict],
          [later, [deregistered(1, { at: later })]],
        ] as const
      ).map(([when, outcome]) => ({
        with: `by their tenant at ${when}`,
        command: DeregisterTargetBackups.make({ count: 1, at: when }),
        in: {
          ...gone,
          "holding two backups": [deregistered(1, { at: when })],
          "holding a locked backup": outcome,
          "holding a backup, upgrading": [deregistered(1, { at: when })],
        },
        otherwise: [],
      })),
    ],
    CheckTargetReadable: [
      { command: CheckTargetReadable.make({}), in: { ...gone, ...upgrading }, otherwise: [] },
    ],
    StartFormatUpgrade: [
      {
        command: StartFormatUpgrade.make({ job_id: upgrade_job_id }),
        in: {
          ...gone,
          pending: conflict,
          "pending again": conflict,
          error: conflict,
          ...upgrading,
          upgraded: [{ ...upgrade_started, from_format: 3 }],
        },
        otherwise: [upgrade_started],
      },
    ],
    CompleteFormatUpgrade: [
      {
        command: CompleteFormatUpgrade.make({ job_id: upgrade_job_id, to_format: 3 }),
        in: { ...gone, upgrading: [upgraded], "holding a backup, upgrading": [upgraded] },
        otherwise: [],
      },
      {
        with: "by another job",
        command: CompleteFormatUpgrade.make({ job_id, to_format: 3 }),
        in: gone,
        otherwise: [],
      },
    ],
    FailFormatUpgrade: [
      {
        command: FailFormatUpgrade.make({ job_id: upgrade_job_id, reason: "cancelled" }),
        in: {
          ...gone,
          upgrading: [upgrade_failed],
          "holding a backup, upgrading": [upgrade_failed],
        },
        otherwise: [],
      },
      {
        with: "by another job",
        command: FailFormatUpgrade.make({ job_id, reason: "cancelled" }),
        in: gone,
        otherwise: [],
      },
    ],
    RecordTargetLocks: [
      {
        command: RecordTargetLocks.make({ protected_until: later }),
        in: { ...gone, "holding a locked backup": [] },
        otherwise: [extended],
      },
      {
        with: "that end sooner",
        command: RecordTargetLocks.make({ protected_until: at }),
        in: { ...gone, "holding a locked backup": [] },
        otherwise: [TargetLocksExtended.make({ protected_until: at })],
      },
    ],
    RecordTargetUsage: [
      { command: RecordTargetUsage.make({ usage_stats }), in: gone, otherwise: [measured] },
    ],
    DeleteTarget: [
      {
        command: DeleteTarget.make({}),
        in: {
          ...gone,
          upgrading: locked,
          "referenced by a policy": dependents,
          "holding two backups": dependents,
          "holding a locked backup": dependents,
          "holding a backup, upgrading": dependents,
        },
        otherwise: [deleted],
      },
    ],
  })
})
