/** Unreadable commits in `/metrics` and `/readyz`. Source: decision 0189. */
import { Effect } from "effect"
import type { ReadModel } from "#projections/read-model.ts"
import type { SystemTables } from "#projections/system/blueprint.ts"
import { countUnreadable } from "#projections/system/quarantine.ts"
import { familyText, type Sample } from "#schemas/metric.ts"

type Model = Pick<ReadModel<SystemTables>, "reader" | "is_maintained">

const help = "Commits of the log that cannot be read, by whether they are acknowledged."

/** Metrics of unreadable commits; empty if this process does not have the audit's read model. */
export const quarantineMetrics = ({ reader, is_maintained }: Model) =>
  is_maintained === false
    ? Effect.succeed("")
    : Effect.map(countUnreadable(reader), ({ acknowledged, open }) => {
        const samples: ReadonlyArray<Sample> = [
          [open, { acknowledged: "false" }],
          [acknowledged, { acknowledged: "true" }],
        ]
        return familyText({ name: "almanac_log_unreadable_commits", type: "gauge", help }, samples)
      })

/** A note for `/readyz`: unreadable commits are skipped, and the process is ready. */
export const quarantineNote = ({ reader, is_maintained }: Model) =>
  is_maintained === false
    ? Effect.undefined
    : Effect.map(countUnreadable(reader), ({ open }) =>
        open === 0
          ? undefined
          : `${open} commits of the log cannot be read and are skipped: almanac log quarantine`,
      )
