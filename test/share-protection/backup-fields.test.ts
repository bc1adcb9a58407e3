import { assert, describe, it } from "@effect/vitest"
import { Schema } from "effect"
import { Backup } from "#actors/share-protection/backup.ts"
import {
  BackupCompleted,
  BackupLost,
  BackupQueued,
  BackupRequested,
  BackupRestoreStarted,
  BackupStarted,
} from "#events/share-protection/backup.ts"
import {
  backup_restores_max,
  CompleteBackup,
  Forgotten,
  RequestBackup,
  StartBackupRestore,
} from "#schemas/share-protection/backup.ts"
import { RestoreId } from "#schemas/share-protection/id.ts"
import { given } from "../world/given.ts"
import {
  at,
  backup,
  backup_id,
  later,
  longest,
  longest_project_id,
  restore_id,
  snapshot,
  uuid,
} from "../world/share-protection/samples.ts"
import { assertStorable } from "../world/state-table.ts"

const conflict = "svc.conflict"
const started = BackupStarted.make({})
const locked = BackupCompleted.make({ ...snapshot, protected_until: at })
const restoring = BackupRestoreStarted.make({ restore_id })
const available = [
  BackupRequested.make(backup),
  BackupQueued.make({}),
  started,
  BackupCompleted.make(snapshot),
]

describe("a backup that is restored often", () => {
  const reads = Array.from({ length: backup_restores_max }, (_, i) =>
    BackupRestoreStarted.make({ restore_id: RestoreId.make(uuid(1000 + i)) }),
  )
  const start = StartBackupRestore.make({ restore_id })
  it("accepts at most as many restores as fit in its snapshot", () => {
    given(Backup)(...available, ...reads.slice(1))
      .when(start)
      .thenEvents(restoring)
    given(Backup)(...available, ...reads)
      .when(start)
      .thenRejected(conflict)
  })
  it("fits in a snapshot with every field at its longest", () => {
    const long = BackupRequested.make({
      ...backup,
      project_id: longest_project_id,
      crash_consistent_wanted: false,
    })
    const saved = assertStorable(Backup, [
      long,
      started,
      locked,
      ...reads,
      BackupLost.make({ reason: longest(1024) }),
    ])
    assert.isAbove(JSON.stringify(saved).length, 10_000)
  })
})

describe("a backup's fields", () => {
  const completes = Schema.is(CompleteBackup)
  const end = { type: "CompleteBackup", ...snapshot }
  it("are validated", () => {
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
  it("in a request require a snapshot, forbid one, or leave the choice", () => {
    const is = Schema.is(RequestBackup)
    for (const crash_consistent_wanted of [true, false, null]) {
      assert.isTrue(is({ type: "RequestBackup", ...backup, crash_consistent_wanted }))
    }
    assert.isFalse(is({ type: "RequestBackup", ...backup, crash_consistent_wanted: "yes" }))
  })
  it("in a retention job have the id of its snapshot", () => {
    const is = Schema.is(Forgotten)
    assert.isTrue(is({ backup_id, engine_snapshot_id: snapshot.engine_snapshot_id }))
    assert.isFalse(is({ backup_id, engine_snapshot_id: null }))
  })
})
