/** `almanac jobs`: long-running operations. Source: document 2 §2, §3, §4. */
import { type CommandGroup, choice, text } from "#cli/client/operation.ts"

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
      what: "The jobs of the project, newest first",
      columns: [
        "id",
        "job_type",
        "state",
        "progress",
        "created_at",
        "bytes_done",
        "bytes_total",
        "attempt",
        "error_category",
        "resource_id",
      ],
      query: [
        choice("state", "Only jobs in this state", states),
        choice("job_type", "Only jobs of this type", types, { flag: "type" }),
        text("resource_id", "Only those of this target, backup or restore"),
        text("target_id", "Only those of this target"),
      ],
      for_operators: {
        path: "/v1/admin/jobs",
        flag: "all-projects",
        query: [text("project_id", "Only this project's (with --all-projects)")],
      },
    },
    {
      command: "show",
      method: "GET",
      path: "/v1/jobs/{id}",
      what: "One job",
      has_job: true,
      for_operators: { path: "/v1/admin/jobs/{id}", flag: "admin" },
    },
    {
      command: "cancel",
      method: "POST",
      path: "/v1/jobs/{id}/cancel",
      what: "Stop a job",
      for_operators: { path: "/v1/admin/jobs/{id}/cancel", flag: "admin" },
    },
    {
      command: "retry",
      method: "POST",
      path: "/v1/admin/jobs/{id}/retry",
      has_job: true,
      what: "Try a job once more that ended in error; for operators",
    },
  ],
}
