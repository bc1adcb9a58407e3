/** What operators of share protection ask for. Source: document 2 §2 to §4, admin endpoints. */
import { fieldsOf } from "#cli/client/fields.ts"
import { choice, type Noun, text } from "#cli/client/operation.ts"
import { DomainSettings } from "#schemas/share-protection/domain.ts"
import { NewRollout } from "#schemas/share-protection/rollout.ts"

const worker_states = ["booting", "ready", "draining", "retiring", "retired", "dead"]

export const workers: Noun = {
  name: "workers",
  operations: [
    {
      verb: "list",
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
      verb: "drain",
      method: "POST",
      path: "/v1/admin/workers/{id}/drain",
      what: "Give it no more jobs; those that run go on",
    },
    {
      verb: "retire",
      method: "POST",
      path: "/v1/admin/workers/{id}/retire",
      what: "End a worker that was drained",
    },
  ],
}

export const rollouts: Noun = {
  name: "rollouts",
  operations: [
    {
      verb: "list",
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
    { verb: "show", method: "GET", path: "/v1/admin/rollouts/{id}", what: "One rollout" },
    {
      verb: "create",
      method: "POST",
      path: "/v1/admin/rollouts",
      what: "Bring an image to the workers of these domains, the canary first",
      example: "almanac rollouts create --image worker-2 --domain-id CANARY --domain-id REST",
      body: fieldsOf(NewRollout),
    },
  ],
}

export const domains: Noun = {
  name: "domains",
  operations: [
    {
      verb: "show",
      method: "GET",
      path: "/v1/admin/domains/{domain_id}",
      what: "What is set for the domain",
    },
    {
      verb: "update",
      method: "PATCH",
      path: "/v1/admin/domains/{domain_id}",
      what: "Set it; applied at the next reconciliation",
      body: fieldsOf(DomainSettings),
    },
  ],
}

export const coverage: Noun = {
  name: "coverage",
  operations: [
    {
      verb: "list",
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

export const scheduling: Noun = {
  name: "scheduling",
  operations: [
    { verb: "show", method: "GET", path: "/v1/admin/scheduling", what: "Whether it is paused" },
    {
      verb: "pause",
      method: "POST",
      path: "/v1/admin/scheduling/pause",
      what: "Take no tick until it is resumed",
    },
    {
      verb: "resume",
      method: "POST",
      path: "/v1/admin/scheduling/resume",
      what: "Take ticks again",
    },
  ],
}

export const reconciliation: Noun = {
  name: "reconciliation",
  operations: [
    {
      verb: "show",
      method: "GET",
      path: "/v1/admin/reconciliation",
      what: "When it ran, and what had drifted",
    },
    {
      verb: "trigger",
      method: "POST",
      path: "/v1/admin/reconciliation/trigger",
      what: "Run it now",
    },
  ],
}

export const usage: Noun = {
  name: "usage",
  operations: [
    {
      verb: "show",
      method: "GET",
      path: "/v1/usage",
      what: "Shares, backups and bytes",
      query: [text("as_of", "As it was then (2026-11-20T12:00:00Z)")],
    },
  ],
}

export const service: Noun = {
  name: "service",
  operations: [
    {
      verb: "info",
      method: "GET",
      path: "/v1/service_info",
      need: "none",
      what: "The service user, for making trusts",
    },
    {
      verb: "version",
      method: "GET",
      path: "/v1/",
      what: "The version document",
    },
    {
      verb: "health",
      method: "GET",
      path: "/v1/admin/system/health",
      what: "Whether the conductor is healthy; for operators",
    },
  ],
}
