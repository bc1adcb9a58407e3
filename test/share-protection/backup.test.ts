import { assert, describe, it } from "@effect/vitest"
import { Schema } from "effect"
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
  BackupRetried,
  BackupStarted,
} from "#events/share-protection/backup.ts"
import {
  AdoptBackup,
  BackupStatus,
  backup_restores_max,
  CompleteBackup,
  DeleteBackup,
  ExpireBackup,
  FailBackup,
  FinishBackupRestore,
  Forgotten,
  LoseBackup,
  QueueBackup,
  RequestBackup,
  RetryBackup,
  StartBackup,
  StartBackupRestore,
} from "#schemas/share-protection/backup.ts"
import { RestoreId } from "#schemas/share-protection/id.ts"
import { given } from "../given.ts"
import { histories } from "../histories.ts"
import {
  a_moment_before,
  adopted,
  at,
  backup,
  backup_id,
  later,
  longest,
  longest_project_id,
  other_restore_id,
  restore_id,
  snapshot,
  uuid,
} from "./samples.ts"
import { assertStorable, everyState } from "./state-table.ts"

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

/** The same outcome wherever it waits for a worker, or has one. */
const waiting = <const Outcome>(outcome: Outcome) => ({
  creating: outcome,
  queued: outcome,
  "queued again": outcome,
})
const active = <const Outcome>(outcome: Outcome) => ({
  running: outcome,
  "running without having been queued": outcome,
})
/** The same outcome wherever its snapshot is there, and nothing reads it. */
const unread = <const Outcome>(outcome: Outcome) => ({
  available: outcome,
  "available, adopted": outcome,
  "available, locked": outcome,
  "available, restored": outcome,
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
          ...{ ...gone, ...unread([deleted(at)]), error: [deleted(at)] },
          "error, for it was lost": [deleted(at)],
        },
        otherwise: conflict,
      },
      {
        with: "a moment before its objects are unlocked",
        command: DeleteBackup.make({ at: a_moment_before, expired: false }),
        in: {
          ...{ ...gone, ...unread([deleted(a_moment_before)]), "available, locked": conflict },
          error: [deleted(a_moment_before)],
          "error, for it was lost": [deleted(a_moment_before)],
        },
        otherwise: conflict,
      },
      {
        with: "that is taken for an expired one",
        command: DeleteBackup.make({ at, expired: true }),
        in: { ...gone, expired: [deleted(at, true)] },
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
        with: "beside another",
        command: StartBackupRestore.make({ restore_id: other_restore_id }),
        in: {
          ...{ ...gone, ...unread([{ ...restoring, restore_id: other_restore_id }]) },
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
  })

  it("comes to no other states than the documented ones, and its end", () => {
    const events = [
      ...[requested, queued, started, completed, failed, retried, expired, lost, was_adopted],
      ...[restoring, restored, deleted(at), deleted(at, true)],
    ]
    const met = new Set([...histories(machine, events, 6)].map(({ state }) => state.value))
    assert.deepEqual(met, new Set([...BackupStatus.literals, "deleted"]))
  })
})

describe("what a backup knows", () => {
  const { engine_snapshot_id, taken_at } = snapshot
  const asked = {
    ...{ ...backup, engine_snapshot_id: null, taken_at: null },
    ...{ protected_until: null, restores: [], reason: null },
  }
  const made = { ...asked, engine_snapshot_id, taken_at }

  it("is what was asked, and then its snapshot", () => {
    assert.deepEqual(known(...running), asked)
    assert.deepEqual(known(...available), made)
    assert.deepEqual(known(...states["available, locked"]), { ...made, protected_until: at })
  })
  it("is as much of one that was found in the repository", () =>
    assert.deepEqual(known(was_adopted), { ...made, job_id: null }))
  it("is why it failed, until it is tried again", () => {
    assert.deepEqual(known(...states.error), { ...asked, reason })
    assert.deepEqual(known(...states["queued again"]), asked)
  })
  it("is no snapshot when that was lost", () =>
    assert.deepEqual(known(...running, locked, lost), { ...asked, reason: lost_reason }))
  it("is who reads it", () => {
    const other = BackupRestoreStarted.make({ restore_id: other_restore_id })
    assert.deepEqual(known(...available, restoring, other).restores, [restore_id, other_restore_id])
    assert.deepEqual(known(...available, restoring, other, restored).restores, [other_restore_id])
  })
  it("is nothing that cannot have happened", () => {
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
  it("names what is in the way", () => {
    const detail = (history: ReadonlyArray<BackupEvent>, command: typeof Backup.command.Type) =>
      JSON.stringify(Backup.decide(history.reduce(Backup.evolve, Backup.initialState), command))
    const end = DeleteBackup.make({ at: a_moment_before, expired: false })
    assert.include(detail(states["available, locked"], end), `protected_until ${at}.`)
    assert.include(detail([...running, locked, restoring], end), `Restore ${restore_id} reads`)
    assert.include(detail(states.expired, end), "The backup is expired by now.")
    assert.include(detail(running, end), "A backup that is running refuses DeleteBackup.")
    const expire = ExpireBackup.make({})
    assert.include(detail([...available, restoring], expire), `Restore ${restore_id} reads`)
    const restore = StartBackupRestore.make({ restore_id })
    assert.include(detail([...available, restoring], restore), "reads the backup already")
    assert.include(detail(states.error, restore), "A backup that is error refuses")
  })
})

describe("a backup that is restored often", () => {
  const reads = Array.from({ length: backup_restores_max }, (_, i) =>
    BackupRestoreStarted.make({ restore_id: RestoreId.make(uuid(1000 + i)) }),
  )
  const start = StartBackupRestore.make({ restore_id })
  it("takes as many restores as its snapshot holds, and not one more", () => {
    given(Backup)(...available, ...reads.slice(1))
      .when(start)
      .thenEvents(restoring)
    given(Backup)(...available, ...reads)
      .when(start)
      .thenRejected(conflict)
  })
  it("fits in a snapshot with every field at its longest", () => {
    const long = BackupRequested.make({
      ...{ ...backup, project_id: longest_project_id, crash_consistent_wanted: false },
    })
    const saved = assertStorable(Backup, [
      ...[long, started, locked, ...reads],
      BackupLost.make({ reason: longest(1024) }),
    ])
    assert.isAbove(JSON.stringify(saved).length, 10_000)
  })
})

describe("a backup's fields", () => {
  const completes = Schema.is(CompleteBackup)
  const end = { type: "CompleteBackup", ...snapshot }
  it("are as they must be", () => {
    const right = [
      { engine_snapshot_id: "x" },
      { protected_until: later },
      { files: 0, bytes: 0, stored_bytes: 0 },
      { partial: true, crash_consistent: false },
    ]
    const wrong = [
      { engine_snapshot_id: "" },
      { engine_snapshot_id: "f".repeat(65) },
      { engine_snapshot_id: "a b" },
      { protected_until: "2026-11-20" },
      { protected_until: undefined },
      { files: -1 },
      { bytes: 0.5 },
      { stored_bytes: "1" },
      { partial: "yes" },
    ]
    for (const fields of right) assert.isTrue(completes({ ...end, ...fields }))
    for (const fields of wrong) {
      assert.isFalse(completes({ ...end, ...fields }), JSON.stringify(fields))
    }
  })
  it("in a request are a wish for a snapshot, or for none, or no wish", () => {
    const is = Schema.is(RequestBackup)
    for (const crash_consistent_wanted of [true, false, null]) {
      assert.isTrue(is({ type: "RequestBackup", ...backup, crash_consistent_wanted }))
    }
    assert.isFalse(is({ type: "RequestBackup", ...backup, crash_consistent_wanted: "yes" }))
  })
  it("in a retention job are what the engine knows it by", () => {
    const is = Schema.is(Forgotten)
    assert.isTrue(is({ backup_id, engine_snapshot_id: snapshot.engine_snapshot_id }))
    assert.isFalse(is({ backup_id, engine_snapshot_id: null }))
  })
})
