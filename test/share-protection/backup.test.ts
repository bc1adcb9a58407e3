import { assert, describe, it } from "@effect/vitest"
import { Backup, machine } from "#actors/share-protection/backup.ts"
import {
  BackupAdopted,
  BackupCompleted,
  BackupDeleted,
  type BackupEvent,
  BackupExpired,
  BackupFailed,
  BackupLost,
  BackupQueued,
  BackupRequested,
  BackupRestoreFinished,
  BackupRestoreStarted,
  BackupRestoreTested,
  BackupRestoreTestFailed,
  BackupRetried,
  BackupStarted,
  BackupUndeleted,
  BackupUndeleteFailed,
  BackupUndeleteStarted,
} from "#events/share-protection/backup.ts"
import {
  AdoptBackup,
  BackupStatus,
  CompleteBackup,
  CompleteBackupUndelete,
  DeleteBackup,
  ExpireBackup,
  FailBackup,
  FailBackupUndelete,
  FailRestoreTest,
  FinishBackupRestore,
  LoseBackup,
  QueueBackup,
  RecordRestoreTest,
  RequestBackup,
  RetryBackup,
  StartBackup,
  StartBackupRestore,
  StartBackupUndelete,
} from "#schemas/share-protection/backup.ts"
import { histories } from "../world/histories.ts"
import {
  a_moment_before,
  adopted,
  at,
  backup,
  later,
  other_restore_id,
  restore_id,
  snapshot,
} from "../world/share-protection/samples.ts"
import { everyState } from "../world/state-table.ts"

const reason = "The engine exited with 1."
const lost_reason = "The repository has it no more."
const requested = BackupRequested.make(backup)
const queued = BackupQueued.make({})
const started = BackupStarted.make({})
const completed = BackupCompleted.make(snapshot)
const locked = BackupCompleted.make({ ...snapshot, protected_until: at })
const failed = BackupFailed.make({ reason })
const retried = BackupRetried.make({})
const expired = BackupExpired.make({})
const lost = BackupLost.make({ reason: lost_reason })
const was_adopted = BackupAdopted.make(adopted)
const restoring = BackupRestoreStarted.make({ restore_id })
const restored = BackupRestoreFinished.make({ restore_id })
const wanted_back = BackupUndeleteStarted.make({})
const back = BackupUndeleted.make({ protected_until: later })
const not_back = BackupUndeleteFailed.make({ reason })
const of_test = { share_id: backup.share_id, taken_at: snapshot.taken_at }
const tested = BackupRestoreTested.make({ ...of_test, files: 3, bytes: 30 })
const test_failed = BackupRestoreTestFailed.make({ ...of_test, reason })
const deleted = (at: string, expired = false) => BackupDeleted.make({ at, expired })

const running = [requested, queued, started]
const available = [...running, completed]

const states = {
  absent: [],
  creating: [requested],
  queued: [requested, queued],
  running,
  "running without having been queued": [requested, started],
  available,
  "available, adopted": [was_adopted],
  "available, locked": [...running, locked],
  "available, being restored": [...available, restoring],
  "available, restored": [...available, restoring, restored],
  error: [...running, failed],
  "error, for it was lost": [...available, lost],
  "error, for it was lost while it was restored": [...available, restoring, lost],
  "queued again": [requested, failed, retried],
  expired: [...available, expired],
  deleted: [...available, deleted(at)],
  undeleting: [...available, expired, wanted_back],
  "expired for good": [...available, expired, wanted_back, not_back],
  "available, undeleted": [...available, expired, wanted_back, back],
  "deleted after it expired": [...available, expired, deleted(at, true)],
} satisfies Record<string, ReadonlyArray<BackupEvent>>

const not_found = "svc.not_found"
const conflict = "svc.conflict"
const illegal = "svc.invalid_state_transition"

const gone = {
  absent: not_found,
  deleted: not_found,
  "deleted after it expired": not_found,
} as const

/** The same outcome in each state in which the backup waits for a worker or has one. */
const waiting = <const Outcome>(outcome: Outcome) => ({
  creating: outcome,
  queued: outcome,
  "queued again": outcome,
})
/** The same outcome in each expired state in which no job looks for the snapshot. */
const past = <const Outcome>(outcome: Outcome) => ({
  expired: outcome,
  "expired for good": outcome,
})
const active = <const Outcome>(outcome: Outcome) => ({
  running: outcome,
  "running without having been queued": outcome,
})
/** The same outcome in each state that has a snapshot and no readers. */
const unread = <const Outcome>(outcome: Outcome) => ({
  available: outcome,
  "available, adopted": outcome,
  "available, locked": outcome,
  "available, restored": outcome,
  "available, undeleted": outcome,
})

const known = (...events: ReadonlyArray<BackupEvent>) =>
  events.reduce(Backup.evolve, Backup.initialState).context

describe("a backup", () => {
  everyState(Backup, states, {
    RequestBackup: [
      { command: RequestBackup.make(backup), in: { absent: [requested] }, otherwise: conflict },
    ],
    AdoptBackup: [
      { command: AdoptBackup.make(adopted), in: { absent: [was_adopted] }, otherwise: conflict },
    ],
    QueueBackup: [
      {
        command: QueueBackup.make({}),
        in: { ...gone, creating: [queued], queued: [], "queued again": [] },
        otherwise: illegal,
      },
    ],
    StartBackup: [
      {
        command: StartBackup.make({}),
        in: { ...gone, ...waiting([started]) },
        otherwise: illegal,
      },
    ],
    CompleteBackup: [
      {
        command: CompleteBackup.make(snapshot),
        in: { ...gone, ...active([completed]) },
        otherwise: illegal,
      },
    ],
    FailBackup: [
      {
        command: FailBackup.make({ reason }),
        in: { ...gone, ...waiting([failed]), ...active([failed]) },
        otherwise: illegal,
      },
    ],
    RetryBackup: [
      {
        command: RetryBackup.make({}),
        in: { ...gone, error: [retried], "error, for it was lost": [retried] },
        otherwise: conflict,
      },
    ],
    ExpireBackup: [
      {
        command: ExpireBackup.make({}),
        in: { ...gone, ...unread([expired]) },
        otherwise: conflict,
      },
    ],
    DeleteBackup: [
      {
        command: DeleteBackup.make({ at, expired: false }),
        in: {
          ...gone,
          ...unread([deleted(at)]),
          error: [deleted(at)],
          "available, undeleted": conflict,
          "error, for it was lost": [deleted(at)],
        },
        otherwise: conflict,
      },
      {
        with: "a moment before its objects are unlocked",
        command: DeleteBackup.make({ at: a_moment_before, expired: false }),
        in: {
          ...gone,
          ...unread([deleted(a_moment_before)]),
          "available, locked": conflict,
          "available, undeleted": conflict,
          error: [deleted(a_moment_before)],
          "error, for it was lost": [deleted(a_moment_before)],
        },
        otherwise: conflict,
      },
      {
        with: "that is taken for an expired one",
        command: DeleteBackup.make({ at, expired: true }),
        in: { ...gone, ...past([deleted(at, true)]) },
        otherwise: conflict,
      },
    ],
    StartBackupRestore: [
      {
        command: StartBackupRestore.make({ restore_id }),
        in: { ...gone, ...unread([restoring]) },
        otherwise: conflict,
      },
      {
        with: "next to another",
        command: StartBackupRestore.make({ restore_id: other_restore_id }),
        in: {
          ...gone,
          ...unread([{ ...restoring, restore_id: other_restore_id }]),
          "available, being restored": [{ ...restoring, restore_id: other_restore_id }],
        },
        otherwise: conflict,
      },
    ],
    FinishBackupRestore: [
      {
        command: FinishBackupRestore.make({ restore_id }),
        in: {
          ...gone,
          "available, being restored": [restored],
          "error, for it was lost while it was restored": [restored],
        },
        otherwise: [],
      },
      {
        with: "of another",
        command: FinishBackupRestore.make({ restore_id: other_restore_id }),
        in: gone,
        otherwise: [],
      },
    ],
    LoseBackup: [
      {
        command: LoseBackup.make({ reason: lost_reason }),
        in: { ...gone, ...unread([lost]), "available, being restored": [lost] },
        otherwise: conflict,
      },
    ],
    StartBackupUndelete: [
      {
        command: StartBackupUndelete.make({}),
        in: { ...gone, ...past([wanted_back]) },
        otherwise: conflict,
      },
    ],
    CompleteBackupUndelete: [
      {
        command: CompleteBackupUndelete.make({ protected_until: later }),
        in: { ...gone, undeleting: [back] },
        otherwise: illegal,
      },
    ],
    FailBackupUndelete: [
      {
        command: FailBackupUndelete.make({ reason }),
        in: { ...gone, undeleting: [not_back] },
        otherwise: illegal,
      },
    ],
    RecordRestoreTest: [
      {
        command: RecordRestoreTest.make({ files: 3, bytes: 30 }),
        in: { ...unread([tested]), "available, being restored": [tested] },
        otherwise: [],
      },
    ],
    FailRestoreTest: [
      {
        command: FailRestoreTest.make({ reason }),
        in: { ...unread([test_failed]), "available, being restored": [test_failed] },
        otherwise: [],
      },
    ],
  })

  it("reaches exactly the documented states, and its end", () => {
    const events = [
      requested,
      queued,
      started,
      completed,
      failed,
      retried,
      expired,
      lost,
      was_adopted,
      restoring,
      restored,
      deleted(at),
      deleted(at, true),
      wanted_back,
      back,
      not_back,
      tested,
      test_failed,
    ]
    const met = new Set([...histories(machine, events, 6)].map(({ state }) => state.value))
    assert.deepEqual(met, new Set([...BackupStatus.literals, "undeleting", "deleted"]))
  })
})

describe("the context of a backup", () => {
  const { engine_snapshot_id, taken_at } = snapshot
  const request = {
    ...backup,
    engine_snapshot_id: null,
    taken_at: null,
    protected_until: null,
    kept: false,
    restores: [],
    reason: null,
  }
  const made = { ...request, engine_snapshot_id, taken_at }

  it("has its request, and then its snapshot", () => {
    assert.deepEqual(known(...running), request)
    assert.deepEqual(known(...available), made)
    assert.deepEqual(known(...states["available, locked"]), { ...made, protected_until: at })
  })
  it("keeps its snapshot when it expires, and is kept after an undelete", () => {
    assert.deepEqual(known(...states.expired), made)
    const kept = { ...made, protected_until: later, kept: true }
    assert.deepEqual(known(...states["available, undeleted"]), kept)
    assert.deepEqual(known(...states["expired for good"]), made)
  })
  it("is the same for an adopted backup", () =>
    assert.deepEqual(known(was_adopted), { ...made, job_id: null }))
  it("has the reason of its failure until a retry", () => {
    assert.deepEqual(known(...states.error), { ...request, reason })
    assert.deepEqual(known(...states["queued again"]), request)
  })
  it("has no snapshot after it was lost", () =>
    assert.deepEqual(known(...running, locked, lost), { ...request, reason: lost_reason }))
  it("has the restores that read it", () => {
    const other = BackupRestoreStarted.make({ restore_id: other_restore_id })
    assert.deepEqual(known(...available, restoring, other).restores, [restore_id, other_restore_id])
    assert.deepEqual(known(...available, restoring, other, restored).restores, [other_restore_id])
  })
  it("ignores impossible events", () => {
    const impossible: ReadonlyArray<ReadonlyArray<BackupEvent>> = [
      [...available, restored],
      [...available, restoring, restoring],
      [...available, restoring, deleted(at)],
      [...available, deleted(at, true)],
      [...available, expired, deleted(at)],
      [...running, locked, deleted(a_moment_before)],
      [...running, deleted(at)],
    ]
    for (const history of impossible) {
      assert.throws(() => known(...history), /cannot happen/, JSON.stringify(history.at(-1)))
    }
  })
  it("names the obstacle", () => {
    const detail = (history: ReadonlyArray<BackupEvent>, command: typeof Backup.command.Type) =>
      JSON.stringify(Backup.decide(history.reduce(Backup.evolve, Backup.initialState), command))
    const end = DeleteBackup.make({ at: a_moment_before, expired: false })
    assert.include(detail(states["available, locked"], end), `protected_until ${at}.`)
    assert.include(detail([...running, locked, restoring], end), `Restore ${restore_id} is reading`)
    assert.include(detail(states.expired, end), "The backup is now expired.")
    assert.include(
      detail(running, end),
      "The backup is running and cannot be deleted: cancel its job",
    )
    const expire = ExpireBackup.make({})
    assert.include(detail([...available, restoring], expire), `Restore ${restore_id} is reading`)
    const restore = StartBackupRestore.make({ restore_id })
    assert.include(detail([...available, restoring], restore), "is already reading the backup")
    assert.include(detail(states.error, restore), "The backup is in error and cannot be restored")
  })
})
