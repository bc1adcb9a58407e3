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
      what: "List the events of the log of a server, newest first",
      example: "almanac audit events --actor token:admin --limit 20",
      columns: ["at", "type", "actor", "subject", "service", "aggregate", "position"],
      query: [
        text("service", "Only events of this service"),
        text("aggregate", "Only events of this kind of aggregate"),
        text("type", "Only events of this type (BackupRequested)"),
        text("actor", "Only events that this principal or process caused"),
        text("subject", "Only events of this subject"),
        text("request_id", "Only events of this request"),
        text("correlation_id", "Only events with this correlation ID"),
        text("from", "Start time (2026-11-20T12:00:00Z)"),
        text("to", "End time, exclusive"),
        choice("order", "Oldest first (asc) or newest first (desc)", ["asc", "desc"]),
      ],
    },
    {
      command: "growth",
      method: "GET",
      path: "/v1/admin/log",
      what: "Show the size of the log and its limit",
    },
    {
      command: "show",
      method: "GET",
      path: `${path}/{service}/{aggregate}/{id}`,
      example: "almanac audit show blob-storage cluster almanac --position 500",
      what: "List the commits of an aggregate, or show its state at a time or position",
      items: "commits",
      is_paged: true,
      columns: ["position", "at", "actor", "events"],
      query: [
        text("at", "Show the state at this time (2026-11-20T12:00:00Z)"),
        text("position", "Show the state after the commit at this position"),
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
      what: "List the read models and how far they are behind the log",
      items: "read_models",
      columns: ["name", "position", "behind"],
    },
    {
      command: "rebuild",
      method: "POST",
      path: "/v1/admin/read-models/{name}/rebuild",
      what: "Rebuild a read model from the log while the server runs",
      is_long: true,
    },
    {
      command: "difference",
      method: "POST",
      path: "/v1/admin/read-models/{name}/difference",
      what: "Compare a read model with the log and list the differences",
      is_long: true,
    },
  ],
}
