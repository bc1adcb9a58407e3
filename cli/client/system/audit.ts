/** Audit commands over HTTP. Source: DECISIONS "audit log for operators". */
import { type CommandGroup, choice, text } from "#cli/client/operation.ts"

const path = "/v1/admin/audit"

export const audit: CommandGroup = {
  name: "audit",
  operations: [
    {
      command: "events",
      method: "GET",
      path,
      items: "events",
      is_paged: true,
      what: "Events of a server's log, the newest first",
      example: "almanac audit events --actor development:tenant --limit 20",
      columns: ["at", "type", "actor", "subject", "service", "aggregate", "position"],
      query: [
        text("service", "Only this service's"),
        text("aggregate", "Only this kind of aggregate's"),
        text("type", "Only events of this type, BackupRequested for example"),
        text("actor", "Only what this principal or process did"),
        text("subject", "Only what happened to this"),
        text("request_id", "Only what this request did"),
        text("correlation_id", "Only this chain"),
        text("from", "From this time on (2026-11-20T12:00:00Z)"),
        text("to", "Before this time"),
        choice("order", "asc begins with the oldest", ["asc", "desc"]),
      ],
    },
    {
      command: "growth",
      method: "GET",
      path: "/v1/admin/log",
      what: "How large the log is, and how much it may grow",
    },
    {
      command: "show",
      method: "GET",
      path: `${path}/{service}/{aggregate}/{id}`,
      what: "The commits of one aggregate, or its state as of a time or a position",
      items: "commits",
      is_paged: true,
      columns: ["position", "at", "actor", "events"],
      query: [
        text("at", "Its state at this time (2026-11-20T12:00:00Z)"),
        text("position", "Its state after the commit at this position"),
      ],
    },
  ],
}

export const readModels: CommandGroup = {
  name: "read-models",
  operations: [
    {
      command: "list",
      alias: "ls",
      method: "GET",
      path: "/v1/admin/read-models",
      what: "How far each is",
      items: "read_models",
      columns: ["name", "position", "behind"],
    },
    {
      command: "rebuild",
      method: "POST",
      path: "/v1/admin/read-models/{name}/rebuild",
      what: "Build one again from the log while the server runs",
      is_long: true,
    },
    {
      command: "difference",
      method: "POST",
      path: "/v1/admin/read-models/{name}/difference",
      what: "Compare one with what the log says, and name what differs",
      is_long: true,
    },
  ],
}
