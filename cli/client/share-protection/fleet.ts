/** Operators' commands of share protection. Source: document 2 §2 to §4, admin endpoints. */
import { fieldsOf } from "#cli/client/fields.ts"
import { type CommandGroup, choice, text } from "#cli/client/operation.ts"
import { DomainSettings } from "#schemas/share-protection/domain.ts"
import { NewRollout } from "#schemas/share-protection/rollout.ts"

const worker_states = ["booting", "ready", "draining", "retiring", "retired", "dead"]

export const workers: CommandGroup = {
  name: "workers",
  operations: [
    {
      command: "list",
      alias: "ls",
      method: "GET",
      path: "/v1/admin/workers",
      items: "workers",
      is_paged: true,
      what: "The workers",
      columns: [
        "id",
        "hostname",
        "state",
        "running_jobs",
        "capacity_slots",
        "heartbeat_at",
        "image_version",
        "engine_version",
      ],
      query: [
        choice("state", "Only workers in this state", worker_states),
        text("image_version", "Only those of this image"),
      ],
    },
    {
      command: "drain",
      method: "POST",
      path: "/v1/admin/workers/{id}/drain",
      what: "Give it no more jobs; those that run go on",
    },
    {
      command: "retire",
      method: "POST",
      path: "/v1/admin/workers/{id}/retire",
      what: "End a worker that was drained",
    },
  ],
}

export const rollouts: CommandGroup = {
  name: "rollouts",
  operations: [
    {
      command: "list",
      alias: "ls",
      method: "GET",
      path: "/v1/admin/rollouts",
      what: "The rollouts",
      items: "rollouts",
      is_paged: true,
      columns: [
        "id",
        "image",
        "state",
        "replaced_workers",
        "current_domain_id",
        "created_at",
        "reason",
      ],
    },
    { command: "show", method: "GET", path: "/v1/admin/rollouts/{id}", what: "One rollout" },
    {
      command: "create",
      method: "POST",
      path: "/v1/admin/rollouts",
      what: "Bring an image to the workers of these domains, the canary first",
      example: "almanac rollouts create --image worker-2 --domain-id CANARY --domain-id REST",
      body: fieldsOf(NewRollout),
    },
  ],
}

export const domains: CommandGroup = {
  name: "domains",
  operations: [
    {
      command: "show",
      method: "GET",
      path: "/v1/admin/domains/{domain_id}",
      what: "What is set for the domain",
    },
    {
      command: "update",
      method: "PATCH",
      path: "/v1/admin/domains/{domain_id}",
      what: "Set it; applied at the next reconciliation",
      body: fieldsOf(DomainSettings),
    },
  ],
}

export const coverage: CommandGroup = {
  name: "coverage",
  operations: [
    {
      command: "list",
      alias: "ls",
      method: "GET",
      path: "/v1/admin/coverage",
      what: "Every share, protected or not",
      items: "coverage",
      columns: [
        "share_id",
        "protected",
        "backup_count",
        "last_proven_restorable",
        "project_id",
        "policy_id",
        "target_id",
      ],
      query: [
        text("project_id", "Only this project's"),
        text("as_of", "As it was then (2026-11-20T12:00:00Z)"),
      ],
    },
  ],
}

export const scheduling: CommandGroup = {
  name: "scheduling",
  operations: [
    { command: "show", method: "GET", path: "/v1/admin/scheduling", what: "Whether it is paused" },
    {
      command: "pause",
      method: "POST",
      path: "/v1/admin/scheduling/pause",
      what: "Take no tick until it is resumed",
    },
    {
      command: "resume",
      method: "POST",
      path: "/v1/admin/scheduling/resume",
      what: "Take ticks again",
    },
  ],
}

export const reconciliation: CommandGroup = {
  name: "reconciliation",
  operations: [
    {
      command: "show",
      method: "GET",
      path: "/v1/admin/reconciliation",
      what: "When it ran, and what had drifted",
    },
    {
      command: "trigger",
      method: "POST",
      path: "/v1/admin/reconciliation/trigger",
      what: "Run it now",
    },
  ],
}

export const usage: CommandGroup = {
  name: "usage",
  operations: [
    {
      command: "show",
      method: "GET",
      path: "/v1/usage",
      what: "Shares, backups and bytes",
      query: [text("as_of", "As it was then (2026-11-20T12:00:00Z)")],
    },
  ],
}

export const service: CommandGroup = {
  name: "service",
  operations: [
    {
      command: "info",
      method: "GET",
      path: "/v1/service_info",
      need: "none",
      what: "The service user, for making trusts",
    },
    {
      command: "version",
      method: "GET",
      path: "/v1/",
      what: "The version document",
    },
    {
      command: "health",
      method: "GET",
      path: "/v1/admin/system/health",
      what: "Whether the conductor is healthy; for operators",
    },
  ],
}
