/** Scheduling and reconciliation of share protection, with their actions. */
import { h } from "../element.ts"
import { actionButton } from "./action.ts"
import type { Reconciliation, Scheduling } from "./api.ts"
import { get, type Result } from "./client.ts"
import { duration, timestamp } from "./format.ts"
import { figure, problemBox, statusMark, when } from "./parts.ts"

const scheduling_path = "/v1/admin/scheduling"
const reconciliation_path = "/v1/admin/reconciliation"

export const fetchMaintenance = async () => {
  const [scheduling, reconciliation] = await Promise.all([
    get<Scheduling>(scheduling_path),
    get<Reconciliation>(reconciliation_path),
  ])
  return { scheduling, reconciliation }
}

interface Maintenance {
  readonly scheduling: Result<Scheduling>
  readonly reconciliation: Result<Reconciliation>
}

/** Time left until a future time: "in 3 h". */
const due = (at: string | null, now: number) => {
  if (at === null) return "\u2013"
  const ms = Date.parse(at) - now
  return h("time", { datetime: at, title: timestamp(at) }, ms > 0 ? `in ${duration(ms)}` : "now")
}

const schedulingCard = (
  { paused, paused_at, next_run }: Scheduling,
  now: number,
  onDone: () => void,
) =>
  h(
    "section",
    { class: "card", "aria-labelledby": "scheduling", "data-key": "scheduling" },
    h(
      "div",
      { class: "card-head" },
      h("h2", { id: "scheduling" }, "Schedules"),
      actionButton({
        verb: paused ? "Resume" : "Pause",
        object: "all schedules",
        onDone,
        path: `${scheduling_path}/${paused ? "resume" : "pause"}`,
        explanation: paused
          ? "Policies start backups again from now on. Runs that were missed are not repeated."
          : "No policy starts a backup until schedules resume. Running jobs continue.",
      }),
    ),
    h("p", {}, paused ? statusMark("waiting", "Paused") : statusMark("good", "Running")),
    h(
      "dl",
      { class: "figures" },
      paused ? figure(when(paused_at, now), "Since") : figure(due(next_run, now), "Next run"),
    ),
  )

const reconciliationCard = (
  { status, last_run_at, next_run_at, drift_count }: Reconciliation,
  now: number,
  onDone: () => void,
) =>
  h(
    "section",
    { class: "card", "aria-labelledby": "reconciliation", "data-key": "reconciliation" },
    h(
      "div",
      { class: "card-head" },
      h("h2", { id: "reconciliation" }, "Reconciliation"),
      status === "idle" &&
        actionButton({
          verb: "Run",
          object: "a reconciliation now",
          onDone,
          path: `${reconciliation_path}/trigger`,
          explanation:
            "Compares the records with shares, holds and repositories. This also runs " +
            "automatically every few minutes.",
        }),
    ),
    h("p", {}, status === "idle" ? statusMark("good", "Idle") : statusMark("busy", "Running")),
    h(
      "dl",
      { class: "figures" },
      figure(when(last_run_at, now), "Last run"),
      figure(due(next_run_at, now), "Next run"),
      figure(drift_count, "Differences"),
    ),
  )

/** Both cards; `onDone` is called after an action. */
export const maintenanceCards = (
  { scheduling, reconciliation }: Maintenance,
  now: number,
  onDone: () => void,
): HTMLElement =>
  h(
    "div",
    { class: "cards", "data-key": "upkeep" },
    scheduling.kind === "problem"
      ? problemBox(scheduling.problem, "Schedules")
      : schedulingCard(scheduling.body, now, onDone),
    reconciliation.kind === "problem"
      ? problemBox(reconciliation.problem, "Reconciliation")
      : reconciliationCard(reconciliation.body, now, onDone),
  )
