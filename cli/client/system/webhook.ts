/** `almanac webhooks`: delivers published events. Source: issue 10 §3; decision 0131. */
import { fieldsOf } from "#cli/client/fields.ts"
import type { CommandGroup } from "#cli/client/operation.ts"
import { NewReplay, NewSecret, NewWebhook, WebhookPatch } from "#schemas/system/webhook-view.ts"

const path = "/v1/webhooks"

export const webhooks: CommandGroup = {
  name: "webhooks",
  operations: [
    {
      command: "list",
      alias: "ls",
      method: "GET",
      path,
      items: "webhooks",
      is_paged: true,
      what: "The webhooks",
      columns: ["id", "state", "url", "types", "services", "created_at", "project_id"],
    },
    {
      command: "show",
      method: "GET",
      path: `${path}/{id}`,
      what: "One webhook, and how its deliveries fare",
    },
    {
      command: "create",
      method: "POST",
      path,
      what: "Make a webhook; its secret is shown this once",
      example: "almanac webhooks create --url https://example.org/hook --type backup_completed",
      body: fieldsOf(NewWebhook),
    },
    {
      command: "update",
      method: "PATCH",
      path: `${path}/{id}`,
      what: "Change a webhook, pause it or enable it again",
      body: fieldsOf(WebhookPatch),
    },
    {
      command: "delete",
      alias: "rm",
      method: "DELETE",
      path: `${path}/{id}`,
      done: "deleted",
      what: "Delete a webhook",
    },
    {
      command: "rotate",
      method: "POST",
      path: `${path}/{id}/secret`,
      what: "Give it a new secret, which is shown this once",
      body: fieldsOf(NewSecret),
    },
    {
      command: "ping",
      method: "POST",
      path: `${path}/{id}/test`,
      what: "Send it a ping, and see what comes back",
    },
    {
      command: "replay",
      method: "POST",
      path: `${path}/{id}/replay`,
      what: "Send events again from a position",
      body: fieldsOf(NewReplay),
    },
    {
      command: "dead-letters",
      method: "GET",
      path: `${path}/{id}/dead-letters`,
      what: "The events that were given up",
      items: "dead_letters",
      is_paged: true,
      columns: ["sequence", "event_type", "event_subject", "attempts", "given_up_at", "detail"],
    },
    {
      command: "redeliver-all",
      method: "POST",
      path: `${path}/{id}/dead-letters/redeliver`,
      what: "Try the oldest dead letters again",
    },
    {
      command: "redeliver",
      method: "POST",
      path: `${path}/{id}/dead-letters/{sequence}/redeliver`,
      what: "Try one dead letter again",
    },
  ],
}
