/**
 * Restore testing: of each protected share the newest backup is tried once in each interval, so
 * that what cannot be restored is known before somebody needs it.
 *
 * Shares have their turns spread over the interval, and few are tried at a time: a test takes a
 * slot of a worker, and never the repository from a backup.
 *
 * Source: beyond the document; docs/decisions/0066-beyond.md.
 */
import { DateTime } from "effect"
import type { Caused, Due } from "#actors/process.ts"
import { derivedId } from "#actors/share-protection/derived-id.ts"
import { jitterOf } from "#actors/share-protection/processes/schedule.ts"
import type { Available, UpkeepView } from "#actors/share-protection/processes/upkeep-view.ts"
import { testBackup } from "#actors/share-protection/requests.ts"
import { JobId, type ShareId } from "#schemas/share-protection/id.ts"

/** Tests that wait or run at a time: what a worker or two have slots for beside backups. */
const tests_max = 2

const instantOf = (ms: number) => DateTime.formatIso(DateTime.makeUnsafe(ms))

/** When the share's present turn began, as epoch milliseconds. */
const turnOf = (share_id: ShareId, interval_ms: number, now: number) => {
  const offset = jitterOf(share_id, interval_ms / 1000)
  return Math.floor((now - offset) / interval_ms) * interval_ms + offset
}

const newest = (backups: Iterable<Available>): Available | undefined => {
  let best: Available | undefined
  for (const backup of backups) {
    if (best === undefined || backup.taken_at > best.taken_at) best = backup
  }
  return best
}

/** One test of each protected share in each of its turns; an interval of 0 means none. */
export const restoreTests = (view: UpkeepView, interval_ms: number, now: number): Due => {
  const { policies, backups, targets, tested, testing } = view
  if (!(interval_ms > 0)) return { now: [] }
  const items: Array<Caused> = []
  let next = Infinity
  for (const [share_id, { enabled }] of policies) {
    const backup = newest(backups.get(share_id)?.values() ?? [])
    if (!enabled || backup === undefined || !targets.has(backup.target_id)) continue
    const turn = turnOf(share_id, interval_ms, now)
    if ((tested.get(share_id) ?? 0) >= turn) next = Math.min(next, turn + interval_ms)
    else if (testing.size + items.length < tests_max) items.push(test(backup, share_id, turn))
  }
  return { now: items, next }
}

const test = (backup: Available, share_id: ShareId, turn: number): Caused => {
  const command_id = `restore-test-${share_id}-${turn}`
  const job_id = JobId.make(derivedId(command_id, instantOf(turn)))
  const { backup_id, project_id, target_id } = backup
  return { command_id, batch: testBackup(job_id, { backup_id, project_id, target_id, share_id }) }
}
