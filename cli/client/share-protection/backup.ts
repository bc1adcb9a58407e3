/** `almanac backups`: what was taken of shares. Source: document 2 §2, §4. */
import { boolean, choice, type Noun, needed, text } from "#cli/client/operation.ts"

const statuses = ["creating", "queued", "running", "available", "error", "expired"]

export const backups: Noun = {
  name: "backups",
  operations: [
    {
      verb: "list",
      alias: "ls",
      method: "GET",
      path: "/v1/backups",
      items: "backups",
      is_paged: true,
      what: "The backups of the project, newest first",
      columns: ["id", "status", "bytes", "files", "created_at", "share_id", "policy_id"],
      query: [
        text("share_id", "Only this share's"),
        text("target_id", "Only those in this target"),
        text("target_bucket_id", "Shape B: only those in this target"),
        text("policy_id", "Only those of this policy"),
        choice("status", "Only backups in this state", statuses),
        boolean("include_expired", "Expired ones too"),
      ],
    },
    { verb: "show", method: "GET", path: "/v1/backups/{id}", what: "One backup" },
    {
      verb: "create",
      method: "POST",
      path: "/v1/backups",
      made: "backup",
      has_job: true,
      what: "Back a share up now",
      example: "almanac backups create --share-id ID --target-id ID --wait",
      body: [
        text("share_id", "The share", needed),
        text("target_id", "Shape A: where it goes"),
        text("policy_id", "Whose patterns and retention it has; needed in Shape B"),
        boolean("crash_consistent", "From a snapshot of the share, or from the share itself"),
      ],
    },
    {
      verb: "delete",
      alias: "rm",
      method: "DELETE",
      path: "/v1/backups/{id}",
      what: "Delete a backup that no lock holds any more",
      done: "deleted",
    },
    {
      verb: "undelete",
      method: "POST",
      path: "/v1/backups/{id}/undelete",
      what: "Bring back what is still recoverable",
      made: "backup",
      has_job: true,
    },
  ],
}
