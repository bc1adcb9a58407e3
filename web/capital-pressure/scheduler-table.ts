/** Scheduled jobs: their last and next runs, and errors. */

import { h } from "../element.ts"
import { relativeTime, time } from "../format.ts"
import { type Column, table } from "../table.ts"
import type { SchedulerStatus } from "./api.ts"

type Job = SchedulerStatus["jobs"][number]

const when = (at: string | null, now: number, otherwise: string) =>
  at === null
    ? h("span", { class: "none" }, otherwise)
    : [relativeTime(at, now), h("small", {}, time(at))]

const columnsOf = (now: number): readonly Column<Job>[] => [
  {
    title: "Job",
    cell: ({ label, description }) => [h("b", {}, label), h("small", {}, description)],
  },
  { title: "Schedule", cell: (job) => job.schedule_repr },
  { title: "Last run", class: "when", cell: (job) => when(job.last_run_at, now, "never") },
  { title: "Last success", class: "when", cell: (job) => when(job.last_success_at, now, "never") },
  {
    title: "Last error",
    class: "text",
    cell: ({ last_error_at, last_error }) =>
      last_error_at === null
        ? h("span", { class: "none" }, "none")
        : [
            h("span", { class: "failure" }, last_error ?? "failed"),
            h("small", {}, `${relativeTime(last_error_at, now)}, ${time(last_error_at)}`),
          ],
  },
  { title: "Next run", class: "when", cell: (job) => when(job.next_run_at, now, "off") },
]

export const schedulerTable = ({ jobs }: SchedulerStatus, now: number): HTMLElement =>
  table({
    id: "scheduler",
    title: "Scheduler",
    caption: "Scheduled jobs with their last and next runs",
    note: jobs.some((job) => job.next_run_at !== null)
      ? null
      : ["The scheduler is off. ", h("code", {}, "capital.scheduler = true"), " enables it."],
    columns: columnsOf(now),
    rows: jobs,
    keyOf: (job) => job.id,
  })
