/** One job in detail: its states and their durations, its events, and its actions. */
import { h } from "../element.ts"
import { actionButton } from "./action.ts"
import type { AuditCommit, AuditHistory, Job } from "./api.ts"
import { type Result, get } from "./ask.ts"
import { figure, idText, problemBox, statusMark } from "./parts.ts"
import { addressOf, historyAddress } from "./view.ts"
import { timestamp, shortId, duration, readable, timeOf } from "./words.ts"

/** Maximum number of commits to show: a job usually has about twenty. */
const commits_max = 200

export const fetchJobHistory = async (id: string) =>
  ({
    id,
    answer: await get<AuditHistory>(
      `/v1/admin/audit/share-protection/job/${encodeURIComponent(id)}?limit=${commits_max}`,
    ),
  }) as const

interface Course {
  readonly id: string
  readonly answer: Result<AuditHistory>
}

/** A period in one state; `to` is undefined for the current state. */
export interface StatePeriod {
  readonly state: string
  readonly from: string
  readonly to: string | undefined
}

/** The job's states in order; commits that keep the state are merged. */
export const periodsOf = (commits: readonly AuditCommit[]): readonly StatePeriod[] => {
  const stays: { state: string; from: string; to: string | undefined }[] = []
  for (const { at, snapshot } of commits) {
    const state = String(snapshot.value)
    const last = stays.at(-1)
    if (last?.state === state) continue
    if (last !== undefined) last.to = at
    stays.push({ state, from: at, to: undefined })
  }
  return stays
}

const ends = new Set(["available", "error"])

const moodOf = ({ state, to }: StatePeriod) =>
  state === "error" ? "bad" : state === "available" || to !== undefined ? "good" : "busy"

const lastedWords = ({ state, from, to }: StatePeriod, now: number) => {
  if (ends.has(state)) return timestamp(from)
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

const facts = (job: Job | undefined, stays: readonly StatePeriod[]) => [
  figure(readable(stays.at(-1)?.state ?? "?"), "State"),
  job && figure(`${job.progress}%`, "Progress"),
  job && figure(job.attempt, "Attempt"),
  job && figure(idText(job.worker_id), "Worker"),
  job && figure(idText(job.target_id), "Target"),
  job && figure(idText(job.project_id), "Project"),
]

/** The action for the job's current state. */
const actions = ({ id, job_type, state }: Job, done: () => void) => {
  const name = `${readable(job_type)} ${shortId(id)}`
  const path = `/v1/admin/jobs/${encodeURIComponent(id)}`
  if (state === "available") return undefined
  if (state === "error") {
    const question = "It is queued for another attempt, with all that it was asked for."
    return actionButton({ verb: "Retry", object: name, path: `${path}/retry`, explanation: question, onDone: done })
  }
  const question =
    "Its engine is stopped, and it ends in error. What it has written stays usable, and it is " +
    "not tried again by itself."
  return actionButton({ verb: "Cancel", object: name, path: `${path}/cancel`, explanation: question, onDone: done })
}

/**
 * The job in detail, above the list. `back` is the filter of the list without the job; `done` is
 * called after an action.
 */
export const jobDetail = (
  { id, answer }: Course,
  job: Job | undefined,
  back: Readonly<Record<string, string | undefined>>,
  now: number,
  done: () => void,
): readonly HTMLElement[] => {
  if (answer.kind === "problem") return [problemBox(answer.problem, `Job ${shortId(id)}`)]
  const { commits } = answer.body
  const stays = periodsOf(commits)
  return [
    h(
      "section",
      { class: "card course", "aria-labelledby": "course", "data-key": `job-${id}` },
      h(
        "div",
        { class: "card-head" },
        h(
          "h2",
          { id: "course" },
          job === undefined ? "Job " : `${readable(job.job_type)} `,
          h("code", {}, id),
        ),
        job && actions(job, done),
        h("a", { href: historyAddress(`share-protection.job.${id}`) }, "Travel through its past"),
        h("a", { href: addressOf("jobs", back) }, "Close"),
      ),
      h("dl", { class: "figures" }, facts(job, stays)),
      h("h3", {}, "Its way"),
      h(
        "ol",
        { class: "way" },
        stays.map((stay, index) =>
          h(
            "li",
            { "data-key": String(index), "aria-current": index === stays.length - 1 && "step" },
            statusMark(moodOf(stay), readable(stay.state)),
            h("small", {}, lastedWords(stay, now)),
          ),
        ),
      ),
      h("h3", {}, "What happened"),
      h(
        "ol",
        { class: "happened" },
        commits.map((commit) => commitLine(id, commit)),
      ),
    ),
  ]
}
