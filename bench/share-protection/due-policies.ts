/** Ten thousand policies of a hundred projects, all due at two in the morning. */
import { Effect } from "effect"
import { type Addressed, address, Commands } from "#actors/commands.ts"
import { Policy } from "#actors/share-protection/policy.ts"
import { createTarget, definePolicy } from "#actors/share-protection/requests.ts"
import { Target } from "#actors/share-protection/target.ts"
import {
  type BackupId,
  JobId,
  PolicyId,
  ProjectId,
  ShareId,
  TargetId,
} from "#schemas/share-protection/id.ts"
import { FinishShareBackup } from "#schemas/share-protection/policy.ts"
import type { Rejection } from "#schemas/share-protection/rejection.ts"
import { CompleteEnrollment } from "#schemas/share-protection/target.ts"

const projects = 100
const targets_each = 10
const policies_each = 100
export const policies_total = projects * policies_each

/** The first tick, in epoch milliseconds; each later one follows a day after the previous. */
export const first_tick_ms = Date.UTC(2026, 10, 21, 2)
const before = "2026-11-20T12:00:00.000Z"

/** A limit that no project reaches. */
export const limit = 1_000_000

const uuid = (sort: number, number: number) =>
  `00000000-0000-7000-8${String(sort).padStart(3, "0")}-${String(number).padStart(12, "0")}`

const projectOf = (number: number) => ProjectId.make(`project-${number}`)
const targetOf = (number: number) => TargetId.make(uuid(1, number))
const shareOf = (number: number) => ShareId.make(uuid(2, number))

const bucketOf = (number: number) => ({
  name: `Bucket ${number}`,
  endpoint: "https://s3.example.org",
  bucket: `backups-${number}`,
  trust_id: "8a1fd1e3c0d94a4f8d1f2f0f5d1e9b77",
  vault_secret_map: {
    access_key: `http://vault:9311/v1/secrets/${uuid(3, number)}`,
    secret_key: `http://vault:9311/v1/secrets/${uuid(4, number)}`,
  },
  ca_cert_ref: null,
  addressing_mode: "path" as const,
  region: null,
  project_id: projectOf(number % projects),
  domain_id: null,
  template_id: null,
  registered_by: "user-1",
  job_id: JobId.make(uuid(5, number)),
})

const enrolledOf = (number: number) =>
  CompleteEnrollment.make({
    job_id: JobId.make(uuid(5, number)),
    repository_password_ref: `http://vault:9311/v1/secrets/${uuid(6, number)}`,
    capabilities: {
      object_lock: true,
      versioning: true,
      lifecycle: true,
      addressing_mode: "path",
      checked_at: before,
    },
    format: 2,
    engine_profile: "restic 0.18.0",
  })

const policyOf = (number: number) => ({
  id: PolicyId.make(uuid(7, number)),
  project_id: projectOf(number % projects),
  target_id: targetOf(number % (projects * targets_each)),
  target_template_id: null,
  name: "Nightly",
  schedule: "0 2 * * *",
  timezone: "UTC",
  retention: { keep_last: 3, keep_daily: 7 },
  enabled: true,
  include_patterns: [],
  exclude_patterns: ["*.tmp"],
  max_retries: 2,
})

/** The concurrency of the scheduling process. */
export const in_flight = 256

type Batches = Iterable<ReadonlyArray<Addressed<Rejection>>>

const sendAll = (name: string, batches: Batches) =>
  Effect.gen(function* () {
    const { send } = yield* Commands
    yield* Effect.forEach(
      [...batches].entries(),
      ([i, batch]) => send({ command_id: `${name}-${i}`, actor: "bench", at: before }, ...batch),
      { concurrency: in_flight, discard: true },
    )
  })

const numbers = (count: number) => Array.from({ length: count }, (_, number) => number)

/** Creates enrolled targets, then the policies. */
export const prepare = Effect.gen(function* () {
  const targets = numbers(projects * targets_each)
  const created = targets.map((n) => createTarget(targetOf(n), bucketOf(n), limit))
  yield* sendAll("create", created)
  yield* sendAll(
    "enroll",
    targets.map((n) => [address(Target, targetOf(n), enrolledOf(n))]),
  )
  const policies = numbers(policies_total)
  yield* sendAll(
    "define",
    policies.map((n) => definePolicy(shareOf(n), policyOf(n), limit)),
  )
})

/** Marks the shares' backups as finished. */
export const finish = (round: number, backups: ReadonlyArray<readonly [ShareId, BackupId]>) =>
  sendAll(
    `finish-${round}`,
    backups.map(([share_id, backup_id]) => [
      address(Policy, share_id, FinishShareBackup.make({ backup_id })),
    ]),
  )
