/** `almanac jobs`: long-running operations. Source: document 2 §2, §3, §4. */
import { type CommandGroup, choice, text } from "#cli/client/operation.ts"
import { job_columns } from "#cli/client/share-protection/job-columns.ts"
import { JobState, JobType } from "#schemas/share-protection/job.ts"
import { Job } from "#schemas/share-protection/views/job.ts"

const resource = [Job]

export const jobs: CommandGroup = {
  name: "jobs",
  operations: [
    {
      command: "list",
      alias: "ls",
      method: "GET",
      path: "/v1/jobs",
      items: "jobs",
      is_paged: true,
      what: "List the jobs of the project, newest first",
      resource,
      computed: job_columns,
      columns: [
        "id",
        "job_type",
        "state",
        "age",
        "target",
        "progress",
        "bytes_done",
        "bytes_total",
        "attempt",
        "error_category",
        "created_at",
        "resource_id",
        "target_id",
      ],
      example: "almanac jobs list --state error --limit 20",
      query: [
        choice("state", "Only jobs in this state", JobState.literals),
        choice("job_type", "Only jobs of this type", JobType.literals, { flag: "type" }),
        text("resource_id", "Only jobs of this target, backup or restore, by its ID"),
        text("target_id", "Only jobs of this target, by ID or name"),
      ],
      for_operators: {
        path: "/v1/admin/jobs",
        flag: "all-projects",
        query: [text("project_id", "Only jobs of this project (with --all-projects)")],
      },
    },
    {
      command: "show",
      method: "GET",
      path: "/v1/jobs/{id}",
      what: "Show one job",
      resource,
      has_job: true,
      for_operators: { path: "/v1/admin/jobs/{id}", flag: "admin" },
    },
    {
      command: "cancel",
      method: "POST",
      path: "/v1/jobs/{id}/cancel",
      what: "Cancel a job",
      resource,
      for_operators: { path: "/v1/admin/jobs/{id}/cancel", flag: "admin" },
    },
    {
      command: "retry",
      method: "POST",
      path: "/v1/admin/jobs/{id}/retry",
      has_job: true,
      what: "Retry a job that ended in error; requires an operator",
      resource,
    },
  ],
}
