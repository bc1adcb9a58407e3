/** Operators' commands of share protection. Source: document 2 §2 to §4, admin endpoints. */
import { fieldsOf } from "#cli/client/fields.ts"
import { type CommandGroup, choice, text } from "#cli/client/operation.ts"
import { DomainSettings } from "#schemas/share-protection/domain.ts"
import { NewRollout, Rollout } from "#schemas/share-protection/rollout.ts"
import { CoverageEntry, Usage } from "#schemas/share-protection/views/usage.ts"
import { Worker, WorkerState } from "#schemas/share-protection/worker.ts"

const as_of = text("as_of", "State at this time (2026-11-20T12:00:00Z)")

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
      what: "List the workers",
      resource: [Worker],
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
        choice("state", "Only workers in this state", WorkerState.literals),
        text("image_version", "Only workers of this image"),
      ],
    },
    {
      command: "drain",
      method: "POST",
      path: "/v1/admin/workers/{id}/drain",
      what: "Stop giving jobs to a worker; its running jobs continue",
    },
    {
      command: "retire",
      method: "POST",
      path: "/v1/admin/workers/{id}/retire",
      what: "Shut down a drained worker",
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
      what: "List the rollouts",
      resource: [Rollout],
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
    {
      command: "show",
      method: "GET",
      path: "/v1/admin/rollouts/{id}",
      what: "Show one rollout",
      resource: [Rollout],
    },
    {
      command: "create",
      method: "POST",
      path: "/v1/admin/rollouts",
      what: "Roll out a worker image to these domains, the canary first",
      resource: [Rollout],
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
      what: "Show the settings of a domain",
    },
    {
      command: "update",
      method: "PATCH",
      path: "/v1/admin/domains/{domain_id}",
      what: "Change the settings of a domain; the next reconciliation applies them",
      example: "almanac domains update DOMAIN_ID --quota-backups 500",
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
      what: "List all shares and whether they are protected",
      resource: [CoverageEntry],
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
      query: [text("project_id", "Only shares of this project"), as_of],
    },
  ],
}

export const scheduling: CommandGroup = {
  name: "scheduling",
  operations: [
    {
      command: "show",
      method: "GET",
      path: "/v1/admin/scheduling",
      what: "Show whether scheduling is paused",
    },
    {
      command: "pause",
      method: "POST",
      path: "/v1/admin/scheduling/pause",
      what: "Pause scheduled backups",
    },
    {
      command: "resume",
      method: "POST",
      path: "/v1/admin/scheduling/resume",
      what: "Resume scheduled backups",
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
      what: "Show the last reconciliation and the drift that it found",
    },
    {
      command: "trigger",
      method: "POST",
      path: "/v1/admin/reconciliation/trigger",
      what: "Run the reconciliation now",
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
      what: "Show the shares, backups and stored bytes of the project",
      resource: [Usage],
      query: [as_of],
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
      what: "Show the service user, which trusts name as trustee",
    },
    {
      command: "version",
      method: "GET",
      path: "/v1/",
      what: "Show the versions of the API",
    },
    {
      command: "health",
      method: "GET",
      path: "/v1/admin/system/health",
      what: "Show the health of the conductor; requires an operator",
    },
  ],
}
