/** `almanac policies`: when a share is backed up and what is kept. Source: document 2 §2, §4. */
import { boolean, integer, list, type Noun, needed, text } from "#cli/client/operation.ts"

const as_of = text("as_of", "As it was then (2026-11-20T12:00:00Z)")

const retention = (["last", "daily", "weekly", "monthly"] as const).map((which) =>
  integer(`retention.keep_${which}`, `Backups to keep, ${which}`, { flag: `keep-${which}` }),
)

const settable = [
  text("timezone", "Of the schedule, Europe/Berlin for example; UTC by default"),
  boolean("enabled", "Whether its schedule runs"),
  list("include_patterns", "Only these paths; may be repeated", { flag: "include" }),
  list("exclude_patterns", "Not these paths; may be repeated", { flag: "exclude" }),
  integer("max_retries", "Tries after a failure that wrote nothing, 0 to 10"),
]

export const policies: Noun = {
  name: "policies",
  operations: [
    {
      verb: "list",
      alias: "ls",
      method: "GET",
      path: "/v1/policies",
      items: "policies",
      is_paged: true,
      what: "The policies of the project",
      columns: ["id", "name", "enabled", "schedule", "share_id", "last_tick", "timezone"],
      query: [
        text("share_id", "Only this share's"),
        text("target_id", "Only those of this target"),
        as_of,
      ],
    },
    {
      verb: "show",
      method: "GET",
      path: "/v1/policies/{id}",
      query: [as_of],
      what: "One policy",
    },
    {
      verb: "create",
      method: "POST",
      path: "/v1/policies",
      what: "Bind a share to a target, with a schedule",
      example:
        "almanac policies create --name nightly --share-id ID --target-id ID " +
        "--schedule '15 3 * * *' --keep-daily 7",
      body: [
        text("name", "Its name", needed),
        text("share_id", "The share", needed),
        text("target_id", "Shape A: the target"),
        text("target_template_id", "Shape B: the template of the targets"),
        text("schedule", "When, as a cron expression", needed),
        ...retention,
        ...settable,
      ],
    },
    {
      verb: "update",
      method: "PATCH",
      path: "/v1/policies/{id}",
      what: "Change a policy",
      body: [
        text("name", "Its name"),
        text("schedule", "When, as a cron expression"),
        ...retention,
        ...settable,
      ],
    },
    {
      verb: "delete",
      alias: "rm",
      method: "DELETE",
      path: "/v1/policies/{id}",
      what: "Delete a policy; its backups stay",
      done: "deleted",
    },
    {
      verb: "preview",
      method: "POST",
      path: "/v1/policies/{id}/retention-preview",
      over: "/v1/policies/{id}",
      what: "What the retention would keep and expire with these rules; nothing is done",
      example: "almanac policies preview ID --keep-daily 3",
      body: [...retention, text("timezone", "In which days and weeks are counted")],
    },
  ],
}
