/** Protection of shares, the age of their backups, and the contents of targets. */
import { h } from "../element.ts"
import { type Column, table } from "../table.ts"
import type { Coverage, Target } from "./api.ts"
import { getRows, rows_max } from "./client.ts"
import { bytes, plural, readable } from "./format.ts"
import { fetchMaintenance, maintenanceCards } from "./maintenance.ts"
import {
  bar,
  emptyBox,
  figure,
  historyLink,
  idText,
  problemBox,
  statusMark,
  when,
} from "./parts.ts"
import { pollingView } from "./polling-view.ts"
import type { View } from "./view.ts"

const poll_ms = 15_000

/** Unprotected shares first, then failed restore tests, then the oldest last backup. */
const worstFirst = (one: Coverage, other: Coverage) => {
  const rank = ({ protected: is_protected, restore_test_failure }: Coverage) =>
    is_protected ? (restore_test_failure === null ? 2 : 1) : 0
  const age = ({ last_backup_at }: Coverage) => last_backup_at ?? ""
  return rank(one) - rank(other) || (age(one) < age(other) ? -1 : 1)
}

const protection = ({ protected: is_protected, policy_id, backup_count }: Coverage) => {
  if (is_protected && backup_count === 0) return statusMark("waiting", "Protected, no backup yet")
  if (is_protected) return statusMark("good", "Protected")
  return statusMark("bad", policy_id === null ? "No policy" : "Policy disabled")
}

const columns = (now: number): readonly Column<Coverage>[] => [
  { title: "Share", cell: ({ share_id }) => idText(share_id) },
  { title: "Protection", cell: protection },
  {
    title: "Last backup",
    class: "when",
    cell: ({ last_backup_at }) =>
      last_backup_at === null ? h("span", { class: "none" }, "never") : when(last_backup_at, now),
  },
  { title: "Backups", is_number: true, cell: ({ backup_count }) => backup_count },
  {
    title: "Restore test",
    class: "text",
    cell: ({ restore_test_failure: failed, last_proven_restorable: proven }) =>
      failed !== null
        ? [statusMark("bad", "Failed "), when(failed.failed_at, now), h("small", {}, failed.reason)]
        : proven === null
          ? h("span", { class: "none" }, "not tested")
          : [statusMark("good", "Passed "), when(proven.proven_at, now)],
  },
  { title: "Project", cell: ({ project_id }) => idText(project_id) },
  {
    title: "Policy",
    cell: ({ policy_id, share_id }) =>
      policy_id === null ? "\u2013" : historyLink("share-protection.policy", share_id),
  },
]

const storedBytes = ({ usage_stats }: Target) => usage_stats?.stored_bytes ?? 0

const targetColumns = (largest: number, now: number): readonly Column<Target>[] => [
  {
    title: "Target",
    cell: ({ id, name }) => [name, h("small", {}, historyLink("share-protection.target", id))],
  },
  { title: "Bucket", cell: ({ bucket, bucket_name }) => bucket ?? bucket_name ?? "\u2013" },
  {
    title: "Status",
    cell: ({ status, reason }) => [
      statusMark(
        status === "available" ? "good" : status === "error" ? "bad" : "busy",
        readable(status),
      ),
      reason !== null && h("small", {}, reason),
    ],
  },
  {
    title: "Stored",
    class: "progress",
    cell: (target) => [
      h("small", {}, target.usage_stats === null ? "not measured" : bytes(storedBytes(target))),
      bar([{ tone: "busy", amount: storedBytes(target), title: "stored" }], largest),
    ],
  },
  {
    title: "Old versions",
    is_number: true,
    cell: ({ usage_stats }) =>
      usage_stats === null ? "\u2013" : bytes(usage_stats.noncurrent_bytes),
  },
  {
    title: "Objects",
    is_number: true,
    cell: ({ usage_stats }) => usage_stats?.objects.toLocaleString("en-US") ?? "\u2013",
  },
  {
    title: "Measured",
    class: "when",
    cell: ({ usage_stats }) => when(usage_stats?.measured_at ?? null, now),
  },
]

const summary = (coverage: readonly Coverage[]) => {
  const protected_shares = coverage.filter((entry) => entry.protected)
  const failed = protected_shares.filter(
    ({ restore_test_failure }) => restore_test_failure !== null,
  )
  const unprotected = coverage.length - protected_shares.length
  return h(
    "section",
    { class: "card", "aria-labelledby": "coverage", "data-key": "summary" },
    h(
      "h2",
      { id: "coverage" },
      `${protected_shares.length} of ${plural(coverage.length, "share")} protected`,
    ),
    bar([
      { tone: "good", amount: protected_shares.length - failed.length, title: "protected" },
      { tone: "bad", amount: failed.length, title: "restore test failed" },
      { tone: "over", amount: unprotected, title: "not protected" },
    ]),
    h(
      "dl",
      { class: "figures" },
      figure(protected_shares.length, "Protected"),
      figure(unprotected, "Not protected"),
      figure(failed.length, "Restore test failed"),
    ),
  )
}

const parts = async (onDone: () => void) => {
  const [maintenance, coverage, targets] = await Promise.all([
    fetchMaintenance(),
    getRows<Coverage>("/v1/admin/coverage", "coverage"),
    getRows<Target>("/v1/admin/targets", "targets", rows_max),
  ])
  const now = Date.now()
  const shares = coverage.kind === "problem" ? [] : coverage.body.rows.toSorted(worstFirst)
  const buckets = targets.kind === "problem" ? [] : targets.body.rows
  const largest = Math.max(1, ...buckets.map(storedBytes))
  return [
    ...(coverage.kind === "problem"
      ? [problemBox(coverage.problem, "Coverage")]
      : shares.length === 0
        ? [
            emptyBox({
              title: "No shares",
              text: "Shares of the share service appear here, with or without protection.",
            }),
          ]
        : [
            summary(shares),
            table({
              id: "shares",
              title: "Shares",
              caption: "Shares, unprotected ones first",
              columns: columns(now),
              rows: shares,
              keyOf: ({ share_id }) => share_id,
            }),
          ]),
    ...(targets.kind === "problem"
      ? [problemBox(targets.problem, "Targets")]
      : buckets.length === 0
        ? []
        : [
            table({
              id: "targets",
              title: "Targets",
              caption: "Contents of each bucket",
              columns: targetColumns(largest, now),
              rows: buckets,
              keyOf: ({ id }) => id,
            }),
          ]),
    maintenanceCards(maintenance, now, onDone),
  ]
}

export const coverageView: View = {
  name: "protection",
  title: "Protection",
  open: (place) => {
    const polling = pollingView(place, {
      load: () => parts(() => polling.now()),
      ms: () => poll_ms,
      refreshesOn: ({ type }) => /^(backup|policy|target)_/.test(type),
    })
    return { show: () => undefined, close: polling.close }
  },
}
