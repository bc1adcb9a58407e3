/** The state of share protection according to its events alone, from any source. */
import assert from "node:assert/strict"
import { holdsTogether } from "../share-protection/simulation/laws.ts"
import {
  type Happened,
  type Law,
  noRecords,
  type Records,
  takeFleet,
  takeJob,
  takeLease,
  takeLedger,
  takeRollout,
  takeWorker,
} from "../share-protection/simulation/records.ts"
import {
  takeBackup,
  takePolicy,
  takeRestore,
  takeTarget,
} from "../share-protection/simulation/resources.ts"
import type { AuditEvent } from "./history.ts"

/** A stream has only events of its noun, so the taker's type is correct. */
type Taker = (records: Records, law: Law, happened: Happened<never>) => void

const takers: Readonly<Record<string, Taker>> = {
  job: takeJob,
  worker: takeWorker,
  lease: takeLease,
  backup: takeBackup,
  restore: takeRestore,
  target: takeTarget,
  policy: takePolicy,
  ledger: takeLedger,
  fleet: takeFleet,
  rollout: takeRollout,
}

const law: Law = (holds, what) => assert(holds, what)

/** An event of share protection, and its position in the log. */
export type Fact = Pick<AuditEvent, "aggregate" | "id" | "position" | "type" | "data">

/** The state after the whole log; fails if an event, or the final state, breaks a law. */
export const foldedBy = (facts: ReadonlyArray<Fact>) => {
  const records = noRecords()
  for (const { aggregate, id, type, data, position } of facts) {
    // The event has the type that its aggregate's taker reads.
    const event = { type, ...data } as never
    takers[aggregate]?.(records, law, { id, event, position })
  }
  holdsTogether(records, law)
  return records
}

/** Ticks that policies took or skipped, each as its policy and its time. */
export const ticksIn = (facts: ReadonlyArray<Fact>) =>
  facts.flatMap(({ type, data }) =>
    type === "TickSkipped" || (type === "ShareBackupStarted" && data.tick !== null)
      ? [`${data.policy_id} ${data.tick}`]
      : [],
  )
