/**
 * Restore testing: tests the newest backup of each protected share once per interval, so that
 * unrestorable backups are found before they are needed.
 *
 * Tests are spread over the interval, and only a few run at a time. A test takes a worker's slot,
 * but never blocks a backup of the repository.
 *
 * Source: beyond the document; docs/decisions/0066-restore-plans-and-undelete.md.
 */
import { DateTime } from "effect"
import type { Caused, Due } from "#actors/process.ts"
import { derivedId } from "#actors/share-protection/derived-id.ts"
import { jitterOf } from "#actors/share-protection/processes/schedule.ts"
import type { AvailableBackup, UpkeepView } from "#actors/share-protection/processes/upkeep-view.ts"
import { testBackup } from "#actors/share-protection/requests.ts"
import { JobId, type ShareId } from "#schemas/share-protection/id.ts"

/** Maximum number of open tests: a worker or two have that many slots to spare. */
const tests_max = 2

const instantOf = (ms: number) => DateTime.formatIso(DateTime.makeUnsafe(ms))

/** Start of the share's current turn, as epoch milliseconds. */
const turnOf = (share_id: ShareId, interval_ms: number, now: number) => {
  const offset = jitterOf(share_id, interval_ms / 1000)
  return Math.floor((now - offset) / interval_ms) * interval_ms + offset
}

const newest = (backups: Iterable<AvailableBackup>): AvailableBackup | undefined => {
  let best: AvailableBackup | undefined
  for (const backup of backups) {
    if (best === undefined || backup.taken_at > best.taken_at) best = backup
  }
  return best
}

/** One test per protected share and turn; an interval of 0 disables tests. */
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

const test = (backup: AvailableBackup, share_id: ShareId, turn: number): Caused => {
  const command_id = `restore-test-${share_id}-${turn}`
  const job_id = JobId.make(derivedId(command_id, instantOf(turn)))
  const { backup_id, project_id, target_id } = backup
  return { command_id, batch: testBackup(job_id, { backup_id, project_id, target_id, share_id }) }
}
