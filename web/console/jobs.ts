/** The list of jobs: filters, progress, and one job in detail. */
import { h } from "../element.ts"
import { type Column, table } from "../table.ts"
import type { Job } from "./api.ts"
import { getRows } from "./client.ts"
import { bytes, duration, readable, shortId } from "./format.ts"
import { fetchJobHistory, jobDetail } from "./job.ts"
import {
  bar,
  choice,
  emptyBox,
  formValues,
  idText,
  problemBox,
  statusMark,
  type Tone,
  textField,
  when,
} from "./parts.ts"
import { pollingView } from "./polling-view.ts"
import { addressOf, type View } from "./view.ts"

/** Rows per page, and the maximum number of pages on the screen. */
const page_rows = 100
const pages_max = 10
/** Polling intervals with and without running jobs: progress publishes no events. */
const running_ms = 2000
const idle_ms = 15_000

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

export const toneOf = (state: string): Tone =>
  state === "available"
    ? "good"
    : state === "error"
      ? "bad"
      : state === "queued"
        ? "waiting"
        : "busy"

const hasEnded = ({ state }: Job) => state === "available" || state === "error"

const filter_names = ["state", "job_type", "project_id"] as const
type Filters = Readonly<Partial<Record<(typeof filter_names)[number] | "job", string>>>

const filtersIn = (query: URLSearchParams): Filters =>
  Object.fromEntries(
    [...filter_names, "job"].flatMap((name) => {
      const value = query.get(name)
      return value === null ? [] : [[name, value]]
    }),
  )

/** The filters without the selected job. */
const withoutJob = (filters: Filters): Filters =>
  Object.fromEntries(Object.entries(filters).filter(([name]) => name !== "job"))

/** Requests all pages on the screen and joins them; returns the first problem instead. */
const fetchPages = async (filters: Filters, pages: number) => {
  const rows: Job[] = []
  let marker: string | null = null
  for (let page = 0; page < pages; page++) {
    const query = new URLSearchParams({ ...withoutJob(filters) })
    if (marker !== null) query.set("marker", marker)
    const result = await getRows<Job>(`/v1/admin/jobs?${query}`, "jobs", page_rows)
    if (result.kind === "problem") return result
    rows.push(...result.body.rows)
    marker = result.body.next_marker
    if (marker === null) break
  }
  return { kind: "ok", body: { rows, next_marker: marker } } as const
}

const progressOf = (job: Job) => {
  const { state, progress, bytes_done, bytes_total } = job
  if (hasEnded(job)) return statusMark(toneOf(state), readable(state))
  const done = bytes_done === null ? "" : bytes(bytes_done)
  const of = bytes_total === null ? "" : ` of ${bytes(bytes_total)}`
  return [
    statusMark(toneOf(state), readable(state)),
    state !== "queued" && [
      bar([{ tone: "busy", amount: progress, title: `${progress}%` }], 100),
      h("small", {}, `${progress}%${done === "" ? "" : ` \u00b7 ${done}${of}`}`),
    ],
  ]
}

/** Duration of the job; the time elapsed so far if it is running. */
const durationOf = ({ started_at, finished_at }: Job, now: number) =>
  started_at === null
    ? "\u2013"
    : duration((finished_at === null ? now : Date.parse(finished_at)) - Date.parse(started_at))

const columns = (filters: Filters, now: number): readonly Column<Job>[] => [
  {
    title: "Job",
    cell: ({ id, job_type }) => [
      h("a", { href: addressOf("jobs", { ...filters, job: id }) }, readable(job_type)),
      h("small", { title: id }, shortId(id)),
    ],
  },
  { title: "State", class: "progress", cell: progressOf },
  {
    title: "Resource",
    cell: ({ resource_type, resource_id, share_id }) => [
      share_id === null ? readable(resource_type) : "Share ",
      share_id === null ? [" ", idText(resource_id)] : idText(share_id),
    ],
  },
  { title: "Project", cell: ({ project_id }) => idText(project_id) },
  { title: "Attempt", is_number: true, cell: ({ attempt }) => attempt },
  { title: "Created", class: "when", cell: ({ created_at }) => when(created_at, now) },
  { title: "Duration", is_number: true, cell: (job) => durationOf(job, now) },
  {
    title: "Error",
    class: "text",
    cell: ({ error }) =>
      error && [h("span", { class: "failure" }, error.detail), h("small", {}, error.code)],
  },
]

const filterForm = (filters: Filters) =>
  h(
    "form",
    {
      class: "filters",
      "data-key": "filters",
      "aria-label": "Filter jobs",
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
      filters.state ?? "",
    ),
    choice(
      "job_type",
      "Type",
      [["", "Any"], ...types.map((name) => [name, readable(name)] as const)],
      filters.job_type ?? "",
    ),
    textField("project_id", "Project", filters.project_id ?? "", "any"),
    h("button", { type: "submit" }, "Filter"),
  )

const noJobs = (filters: Filters) =>
  Object.keys(filters).length > 0
    ? emptyBox({ title: "No matching jobs", text: "No job matches all filters." })
    : emptyBox({
        title: "No jobs",
        text:
          "Workers run jobs, such as backups, restores and the enrollment of targets. To try " +
          "them, start a test bucket with this command, then follow the guide to a first backup.",
        commands: ["npm run almanac -- demo s3"],
      })

export const jobsView: View = {
  name: "jobs",
  title: "Jobs",
  open: (place) => {
    let filters: Filters = {}
    let pages = 1
    let is_running = false
    const more = () => {
      pages = Math.min(pages + 1, pages_max)
      polling.now()
    }
    const parts = async () => {
      const wanted = filters
      const [result, history] = await Promise.all([
        fetchPages(wanted, pages),
        wanted.job === undefined ? undefined : fetchJobHistory(wanted.job),
      ])
      if (result.kind === "problem") return [problemBox(result.problem, "Jobs")]
      const { rows, next_marker } = result.body
      const now = Date.now()
      is_running = rows.some((job) => !hasEnded(job))
      const selected = rows.find(({ id }) => id === wanted.job)
      const list_filters = withoutJob(wanted)
      return [
        ...(history === undefined
          ? []
          : jobDetail(history, selected, list_filters, now, () => polling.now())),
        filterForm(wanted),
        rows.length === 0
          ? noJobs(list_filters)
          : table({
              id: "jobs",
              title: "Jobs",
              caption: "Jobs of all projects, newest first",
              columns: columns(list_filters, now),
              rows,
              keyOf: ({ id }) => id,
              rowClass: ({ id }) => (id === wanted.job ? "chosen" : null),
            }),
        ...(next_marker === null || pages === pages_max
          ? []
          : [h("button", { type: "button", "data-key": "more", onclick: more }, "Older jobs")]),
      ]
    }
    const polling = pollingView(place, {
      load: parts,
      ms: () => (is_running ? running_ms : idle_ms),
      refreshesOn: () => true,
    })
    return {
      show: (query) => {
        const next = filtersIn(query)
        const is_other = filter_names.some((name) => next[name] !== filters[name])
        if (is_other) pages = 1
        const is_new = is_other || next.job !== filters.job
        filters = next
        if (is_new) polling.now()
      },
      close: polling.close,
    }
  },
}
