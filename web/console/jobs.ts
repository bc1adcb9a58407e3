/** The list of jobs: filters, progress, and one job in detail. */
import { h } from "../element.ts"
import { type Column, table } from "../table.ts"
import type { Job } from "./api.ts"
import { getRows } from "./ask.ts"
import { fetchJobHistory, jobDetail } from "./job.ts"
import { pollingView } from "./living.ts"
import {
  bar,
  choice,
  emptyBox,
  formValues,
  idText,
  type Mood,
  problemBox,
  statusMark,
  textField,
  when,
} from "./parts.ts"
import { addressOf, type View } from "./view.ts"
import { bytes, shortId, duration, readable } from "./words.ts"

/** Rows per page, and the maximum number of pages on the screen. */
const page_rows = 100
const pages_max = 10
/** Polling intervals with and without running jobs: progress publishes no events. */
const running_ms = 2000
const resting_ms = 15_000

const types = [
  "backup",
  "restore",
  "target_enroll",
  "retention",
  "maintenance",
  "repo_format_upgrade",
  "undelete",
  "restore_test",
]
const states = [
  "queued",
  "provisioning_network",
  "provisioning_source",
  "connecting_repository",
  "transferring",
  "finalizing",
  "releasing",
  "available",
  "error",
]

export const moodOf = (state: string): Mood =>
  state === "available"
    ? "good"
    : state === "error"
      ? "bad"
      : state === "queued"
        ? "waiting"
        : "busy"

const hasEnded = ({ state }: Job) => state === "available" || state === "error"

const filters = ["state", "job_type", "project_id"] as const
type Asked = Readonly<Partial<Record<(typeof filters)[number] | "job", string>>>

const askedIn = (query: URLSearchParams): Asked =>
  Object.fromEntries(
    [...filters, "job"].flatMap((name) => {
      const value = query.get(name)
      return value === null ? [] : [[name, value]]
    }),
  )

/** The filters without the selected job. */
const listed = (asked: Asked): Asked =>
  Object.fromEntries(Object.entries(asked).filter(([name]) => name !== "job"))

/** Requests all pages on the screen and joins them; returns the first problem instead. */
const askPages = async (asked: Asked, pages: number) => {
  const rows: Job[] = []
  let marker: string | null = null
  for (let page = 0; page < pages; page++) {
    const query = new URLSearchParams({ ...listed(asked) })
    if (marker !== null) query.set("marker", marker)
    const answer = await getRows<Job>(`/v1/admin/jobs?${query}`, "jobs", page_rows)
    if (answer.kind === "problem") return answer
    rows.push(...answer.body.rows)
    marker = answer.body.next_marker
    if (marker === null) break
  }
  return { kind: "answer", body: { rows, next_marker: marker } } as const
}

const progressOf = (job: Job) => {
  const { state, progress, bytes_done, bytes_total } = job
  if (hasEnded(job)) return statusMark(moodOf(state), readable(state))
  const done = bytes_done === null ? "" : bytes(bytes_done)
  const of = bytes_total === null ? "" : ` of ${bytes(bytes_total)}`
  return [
    statusMark(moodOf(state), readable(state)),
    state !== "queued" && [
      bar([{ mood: "busy", amount: progress, title: `${progress}%` }], 100),
      h("small", {}, `${progress}%${done === "" ? "" : ` \u00b7 ${done}${of}`}`),
    ],
  ]
}

/** Duration of the job, so far if it is running. */
const lasted = ({ started_at, finished_at }: Job, now: number) =>
  started_at === null
    ? "\u2013"
    : duration((finished_at === null ? now : Date.parse(finished_at)) - Date.parse(started_at))

const columns = (asked: Asked, now: number): readonly Column<Job>[] => [
  {
    title: "Job",
    cell: ({ id, job_type }) => [
      h("a", { href: addressOf("jobs", { ...asked, job: id }) }, readable(job_type)),
      h("small", { title: id }, shortId(id)),
    ],
  },
  { title: "State", class: "progress", cell: progressOf },
  {
    title: "Of",
    cell: ({ resource_type, resource_id, share_id }) => [
      share_id === null ? readable(resource_type) : "Share ",
      share_id === null ? [" ", idText(resource_id)] : idText(share_id),
    ],
  },
  { title: "Project", cell: ({ project_id }) => idText(project_id) },
  { title: "Attempt", is_number: true, cell: ({ attempt }) => attempt },
  { title: "Asked", class: "when", cell: ({ created_at }) => when(created_at, now) },
  { title: "Ran", is_number: true, cell: (job) => lasted(job, now) },
  {
    title: "Why not",
    class: "text",
    cell: ({ error }) =>
      error && [h("span", { class: "failure" }, error.detail), h("small", {}, error.code)],
  },
]

const filterForm = (asked: Asked) =>
  h(
    "form",
    {
      class: "filters",
      "data-key": "filters",
      "aria-label": "Which jobs",
      onsubmit: (event) => {
        event.preventDefault()
        if (event.target instanceof HTMLFormElement) {
          location.hash = addressOf("jobs", formValues(event.target))
        }
      },
      onchange: (event) => {
        const field = event.target
        if (field instanceof HTMLSelectElement) field.form?.requestSubmit()
      },
    },
    choice(
      "state",
      "State",
      [["", "Any"], ...states.map((name) => [name, readable(name)] as const)],
      asked.state ?? "",
    ),
    choice(
      "job_type",
      "Type",
      [["", "Any"], ...types.map((name) => [name, readable(name)] as const)],
      asked.job_type ?? "",
    ),
    textField("project_id", "Project", asked.project_id ?? "", "any"),
    h("button", { type: "submit" }, "Filter"),
  )

const nothing = (asked: Asked) =>
  Object.keys(asked).length > 0
    ? emptyBox({ title: "No such job", text: "No job has all that the filters ask for." })
    : emptyBox({
        title: "No job yet",
        text:
          "A job is whatever a worker does: a backup, a restore, the enrollment of a target. The " +
          "guide leads from a bucket to the first backup; this server holds one to try it with.",
        commands: ["npm run almanac -- demo s3"],
      })

export const jobsView: View = {
  name: "jobs",
  title: "Jobs",
  open: (place) => {
    let asked: Asked = {}
    let pages = 1
    let is_running = false
    const more = () => {
      pages = Math.min(pages + 1, pages_max)
      drawn.now()
    }
    const parts = async () => {
      const mine = asked
      const [answer, course] = await Promise.all([
        askPages(mine, pages),
        mine.job === undefined ? undefined : fetchJobHistory(mine.job),
      ])
      if (answer.kind === "problem") return [problemBox(answer.problem, "Jobs")]
      const { rows, next_marker } = answer.body
      const now = Date.now()
      is_running = rows.some((job) => !hasEnded(job))
      const shown = rows.find(({ id }) => id === mine.job)
      const of_list = listed(mine)
      return [
        ...(course === undefined
          ? []
          : jobDetail(course, shown, of_list, now, () => drawn.now())),
        filterForm(mine),
        rows.length === 0
          ? nothing(of_list)
          : table({
              id: "jobs",
              title: "Jobs",
              caption: "Jobs of all projects, the newest first",
              columns: columns(of_list, now),
              rows,
              keyOf: ({ id }) => id,
              rowClass: ({ id }) => (id === mine.job ? "chosen" : null),
            }),
        ...(next_marker === null || pages === pages_max
          ? []
          : [h("button", { type: "button", "data-key": "more", onclick: more }, "Older jobs")]),
      ]
    }
    const drawn = pollingView(place, {
      load: parts,
      ms: () => (is_running ? running_ms : resting_ms),
      refreshesOn: () => true,
    })
    return {
      show: (query) => {
        const next = askedIn(query)
        const is_other = filters.some((name) => next[name] !== asked[name])
        if (is_other) pages = 1
        const is_new = is_other || next.job !== asked.job
        asked = next
        if (is_new) drawn.now()
      },
      close: drawn.close,
    }
  },
}
