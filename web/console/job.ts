/** One job in detail: its states and their durations, its events, and its actions. */
import { h } from "../element.ts"
import { actionButton } from "./action.ts"
import type { AuditCommit, AuditHistory, Job } from "./api.ts"
import { get, type Result } from "./client.ts"
import { duration, readable, shortId, timeOf, timestamp } from "./format.ts"
import { figure, idText, problemBox, statusMark } from "./parts.ts"
import { addressOf, historyAddress } from "./view.ts"

/** Maximum number of commits to show: a job usually has about twenty. */
const commits_max = 200

export const fetchJobHistory = async (id: string) =>
  ({
    id,
    result: await get<AuditHistory>(
      `/v1/admin/audit/share-protection/job/${encodeURIComponent(id)}?limit=${commits_max}`,
    ),
  }) as const

interface JobHistory {
  readonly id: string
  readonly result: Result<AuditHistory>
}

/** A period in one state; `to` is undefined for the current state. */
export interface StatePeriod {
  readonly state: string
  readonly from: string
  readonly to: string | undefined
}

/** The job's states in order; commits that keep the state are merged. */
export const periodsOf = (commits: readonly AuditCommit[]): readonly StatePeriod[] => {
  const periods: { state: string; from: string; to: string | undefined }[] = []
  for (const { at, snapshot } of commits) {
    const state = String(snapshot.value)
    const last = periods.at(-1)
    if (last?.state === state) continue
    if (last !== undefined) last.to = at
    periods.push({ state, from: at, to: undefined })
  }
  return periods
}

const final_states = new Set(["available", "error"])

const toneOf = ({ state, to }: StatePeriod) =>
  state === "error" ? "bad" : state === "available" || to !== undefined ? "good" : "busy"

const durationText = ({ state, from, to }: StatePeriod, now: number) => {
  if (final_states.has(state)) return timestamp(from)
  const ms = (to === undefined ? now : Date.parse(to)) - Date.parse(from)
  return duration(ms)
}

const typesOf = ({ events }: AuditCommit) =>
  events.map((event) =>
    typeof event === "object" && event !== null ? String(Reflect.get(event, "type")) : "?",
  )

const commitLine = (id: string, commit: AuditCommit) =>
  h(
    "li",
    { "data-key": String(commit.position) },
    h("time", { datetime: commit.at, title: timestamp(commit.at) }, timeOf(commit.at)),
    h(
      "a",
      { href: historyAddress(`share-protection.job.${id}`, commit.position) },
      typesOf(commit).join(", "),
    ),
    h("span", { class: "none" }, commit.actor),
  )

const figures = (job: Job | undefined, periods: readonly StatePeriod[]) => [
  figure(readable(periods.at(-1)?.state ?? "?"), "State"),
  job && figure(`${job.progress}%`, "Progress"),
  job && figure(job.attempt, "Attempt"),
  job && figure(idText(job.worker_id), "Worker"),
  job && figure(idText(job.target_id), "Target"),
  job && figure(idText(job.project_id), "Project"),
]

/** The action for the job's current state. */
const actions = ({ id, job_type, state }: Job, onDone: () => void) => {
  const name = `${readable(job_type)} ${shortId(id)}`
  const path = `/v1/admin/jobs/${encodeURIComponent(id)}`
  if (state === "available") return undefined
  if (state === "error") {
    const explanation = "The job is queued for another attempt with the same parameters."
    return actionButton({ verb: "Retry", object: name, path: `${path}/retry`, explanation, onDone })
  }
  const explanation =
    "The engine stops and the job ends in error. Data that it has written stays usable. The job " +
    "is not retried automatically."
  return actionButton({ verb: "Cancel", object: name, path: `${path}/cancel`, explanation, onDone })
}

/**
 * The job in detail, above the list. `back` is the filter of the list without the job; `onDone` is
 * called after an action.
 */
export const jobDetail = (
  { id, result }: JobHistory,
  job: Job | undefined,
  back: Readonly<Record<string, string | undefined>>,
  now: number,
  onDone: () => void,
): readonly HTMLElement[] => {
  if (result.kind === "problem") return [problemBox(result.problem, `Job ${shortId(id)}`)]
  const { commits } = result.body
  const periods = periodsOf(commits)
  return [
    h(
      "section",
      { class: "card job", "aria-labelledby": "job", "data-key": `job-${id}` },
      h(
        "div",
        { class: "card-head" },
        h(
          "h2",
          { id: "job" },
          job === undefined ? "Job " : `${readable(job.job_type)} `,
          h("code", {}, id),
        ),
        job && actions(job, onDone),
        h("a", { href: historyAddress(`share-protection.job.${id}`) }, "View history"),
        h("a", { href: addressOf("jobs", back) }, "Close"),
      ),
      h("dl", { class: "figures" }, figures(job, periods)),
      h("h3", {}, "Steps"),
      h(
        "ol",
        { class: "way" },
        periods.map((period, index) =>
          h(
            "li",
            { "data-key": String(index), "aria-current": index === periods.length - 1 && "step" },
            statusMark(toneOf(period), readable(period.state)),
            h("small", {}, durationText(period, now)),
          ),
        ),
      ),
      h("h3", {}, "Events"),
      h(
        "ol",
        { class: "happened" },
        commits.map((commit) => commitLine(id, commit)),
      ),
    ),
  ]
}
