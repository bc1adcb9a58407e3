/**
 * rebuild_from_repository: compares the records of backups with the snapshots in the repositories.
 *
 * An unknown snapshot is adopted by its tags; a record without its snapshot is marked as lost. A
 * leftover snapshot is reported and forgotten by a separate job.
 *
 * Source: document 2 §2 Reconciliation status; DECISIONS, document 2, automatic retry.
 */
import { Clock, DateTime, Effect, Option, Stream } from "effect"
import { address, Commands } from "#actors/commands.ts"
import { Backup, backupAfter } from "#actors/share-protection/backup.ts"
import { withKeys } from "#actors/share-protection/bucket-keys.ts"
import { derivedId } from "#actors/share-protection/derived-id.ts"
import { Job, jobAfter } from "#actors/share-protection/job.ts"
import { Engine, type Repository, type Snapshot } from "#actors/share-protection/ports/engine.ts"
import { Trusts } from "#actors/share-protection/ports/trusts.ts"
import { Vault } from "#actors/share-protection/ports/vault.ts"
import type { Loop } from "#actors/share-protection/processes/reconciling.ts"
import { adoptBackup, queueTargetJob } from "#actors/share-protection/requests.ts"
import { readTags } from "#actors/share-protection/snapshot-tag.ts"
import { Target, targetAfter } from "#actors/share-protection/target.ts"
import { Log, parseStream } from "#events/log.ts"
import { AdoptBackup, type Forgotten, LoseBackup } from "#schemas/share-protection/backup.ts"
import { BackupId, JobId, TargetId } from "#schemas/share-protection/id.ts"
import { Conflict } from "#schemas/share-protection/rejection.ts"

const name = "share-protection-reconciling"

/** Adopted snapshots are exempt from quotas: they were within quota when they were taken. */
const no_limit = Number.MAX_SAFE_INTEGER

type TargetNow = Effect.Success<ReturnType<typeof targetAfter>>
type BackupNow = Effect.Success<ReturnType<typeof backupAfter>>
type Found = Effect.Success<Loop>

/** The record of a backup, with its last commit. */
interface BackupRecord extends BackupNow {
  readonly position: number
  readonly at: string
}

interface Leftover extends Forgotten {
  readonly record: BackupRecord
}

/** Opens the repository of an enrolled target with its trust. */
const openRepository = Effect.fnUntraced(function* (target: TargetNow) {
  const { trust_id, vault_secret_map, repository_password_ref } = target
  if (trust_id === null || vault_secret_map === null || repository_password_ref === null) return
  const delegation = yield* (yield* Trusts).redeem(trust_id)
  const bucket = yield* withKeys({ ...target, vault_secret_map }, delegation)
  const password = yield* (yield* Vault).read(delegation, repository_password_ref)
  const repository: Repository = { ...bucket, password }
  return repository
})

/** States of a backup whose snapshot belongs, or may belong, in the repository. */
const claiming = new Set(["available", "creating", "queued", "running", "undeleting"])

/** Stored in the records of lost backups: a reappearing snapshot needs manual inspection. */
const lost_reason = "Its snapshot is no longer in the repository."

/**
 * Compares the snapshots of one target with its records. Anyone with the bucket's keys can write
 * any tag, so snapshots of other projects in a project's own bucket are ignored.
 */
const compareSnapshots = (
  target_id: TargetId,
  owner_id: string | null,
  snapshots: ReadonlyArray<Snapshot>,
  records: ReadonlyMap<BackupId, BackupRecord>,
) => {
  const found_ids = new Set<string>()
  const unknown: Array<{ readonly backup_id: BackupId; readonly adopt: typeof AdoptBackup.Type }> =
    []
  const leftover: Array<Leftover> = []
  for (const snapshot of snapshots) {
    const tags = Option.getOrUndefined(readTags(snapshot.tags))
    if (tags === undefined || (owner_id !== null && tags.project_id !== owner_id)) continue
    const { backup_id, ...about } = tags
    found_ids.add(backup_id)
    const record = records.get(backup_id)
    if (record === undefined) {
      const { engine_snapshot_id, taken_at, bytes, stored_bytes, files } = snapshot
      const made = { engine_snapshot_id, taken_at, bytes, stored_bytes, files }
      const rest = { target_id, partial: false, protected_until: null }
      unknown.push({ backup_id, adopt: AdoptBackup.make({ ...about, ...made, ...rest }) })
    } else if (!claiming.has(record.state) && record.project_id === tags.project_id) {
      leftover.push({ backup_id, engine_snapshot_id: snapshot.engine_snapshot_id, record })
    }
  }
  const lost = [...records].filter(
    ([backup_id, { state, target_id: at }]) =>
      at === target_id && state === "available" && !found_ids.has(backup_id),
  )
  return { unknown, leftover, lost: lost.map(([backup_id]) => backup_id) }
}

const recordsOf = Effect.fnUntraced(function* (log: Log["Service"]) {
  const records = new Map<BackupId, BackupRecord>()
  yield* Stream.runForEach(log.lasts(Backup.name), (recorded) =>
    Effect.map(backupAfter(log, recorded), (backup) => {
      const { stream, position, commit } = recorded
      const id = BackupId.make(parseStream(stream).id)
      records.set(id, { ...backup, position, at: commit.at })
    }),
  )
  return records
})

/** Snapshots that an open job will forget. */
const forgettingOf = Effect.fnUntraced(function* (log: Log["Service"]) {
  const forgetting = new Set<string>()
  yield* Stream.runForEach(log.lasts(Job.name), (recorded) =>
    Effect.map(jobAfter(log, recorded), ({ state, forget }) => {
      if (state === "available" || state === "error") return
      for (const { engine_snapshot_id } of forget) forgetting.add(engine_snapshot_id)
    }),
  )
  return forgetting
})

/**
 * A job that forgets a leftover snapshot, once per commit of its backup: the job's id derives from
 * the last commit, and a failed job is retried automatically.
 */
const forgetLeftover = (
  target_id: TargetId,
  { backup_id, engine_snapshot_id, record }: Leftover,
) => {
  const command_id = `forget-${engine_snapshot_id}-${record.position}`
  const job_id = JobId.make(derivedId(command_id, record.at))
  const { project_id } = record
  const forget = [{ backup_id, engine_snapshot_id }]
  return { command_id, job: queueTargetJob(job_id, "retention", target_id, project_id, forget) }
}

/** A lost snapshot that reappears is only reported, because the cause is unknown. */
const isExpendable = ({ record }: Leftover, forgetting: ReadonlySet<string>, id: string) =>
  record.reason !== lost_reason && !forgetting.has(id)

const drift = (kind: string, detail: string) => (subject: string) => ({ kind, subject, detail })

const drifts = {
  unknown: drift("snapshot_unknown", "A snapshot without a record was adopted."),
  lost: drift("snapshot_lost", "The snapshot of an available backup is not in the repository."),
  leftover: drift(
    "snapshot_leftover",
    "The repository still contains a snapshot that no backup needs.",
  ),
}

interface Known {
  readonly records: ReadonlyMap<BackupId, BackupRecord>
  readonly forgetting: ReadonlySet<string>
}

/** Compares one target and repairs its records. An unreadable target is only reported. */
const reconcile = Effect.fnUntraced(function* (
  target_id: TargetId,
  target: TargetNow,
  { records, forgetting }: Known,
) {
  const engine = yield* Engine
  const { send } = yield* Commands
  const repository = yield* openRepository(target)
  if (repository === undefined) return []
  const { unknown, lost, leftover } = compareSnapshots(
    target_id,
    target.project_id,
    yield* engine.snapshots(repository),
    records,
  )
  const at = DateTime.formatIso(DateTime.makeUnsafe(yield* Clock.currentTimeMillis))
  const origin = (cause: string) => ({ command_id: cause, actor: name, at })
  for (const { backup_id, adopt } of unknown) {
    yield* send(origin(`adopt-${backup_id}`), ...adoptBackup(backup_id, adopt, no_limit))
  }
  for (const backup_id of lost) {
    const lose = LoseBackup.make({ reason: lost_reason })
    yield* send(origin(`lose-${backup_id}-${at}`), address(Backup, backup_id, lose))
  }
  for (const left of leftover) {
    if (!isExpendable(left, forgetting, left.engine_snapshot_id)) continue
    const { command_id, job } = forgetLeftover(target_id, left)
    // The job was already queued.
    yield* Effect.catchIf(
      send(origin(command_id), job),
      (refusal) => refusal instanceof Conflict,
      () => Effect.void,
    )
  }
  return [
    ...unknown.map(({ backup_id }) => drifts.unknown(backup_id)),
    ...lost.map(drifts.lost),
    ...leftover.map(({ backup_id }) => drifts.leftover(backup_id)),
  ]
})

/** Reconciles all enrolled targets in sequence. */
export const repositoryRebuild = Effect.gen(function* () {
  const log = yield* Log
  const ports = yield* Effect.context<Commands | Engine | Trusts | Vault>()
  const loop: Loop = Effect.gen(function* () {
    const found: Array<Found[number]> = []
    const known = { records: yield* recordsOf(log), forgetting: yield* forgettingOf(log) }
    yield* Stream.runForEach(log.lasts(Target.name), (recorded) =>
      Effect.gen(function* () {
        const target = yield* targetAfter(log, recorded)
        const target_id = TargetId.make(parseStream(recorded.stream).id)
        if (target.status !== "available") return
        const unreadable = drift("repository_unreadable", "")(target_id)
        const compare = Effect.provideContext(reconcile(target_id, target, known), ports)
        const differences = yield* Effect.catch(compare, ({ detail }) =>
          Effect.succeed([{ ...unreadable, detail }]),
        )
        found.push(...differences)
      }),
    )
    return found
  })
  return loop
})
