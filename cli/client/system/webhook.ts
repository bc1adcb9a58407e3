/** `almanac webhooks`: published events, sent to an address. Source: issue 10 §3; decision 0131. */
import { fieldsOf } from "#cli/client/fields.ts"
import type { Noun } from "#cli/client/operation.ts"
import { NewReplay, NewSecret, NewWebhook, WebhookPatch } from "#schemas/system/webhook-view.ts"

const path = "/v1/webhooks"

export const webhooks: Noun = {
  name: "webhooks",
  operations: [
    {
      verb: "list",
      alias: "ls",
      method: "GET",
      path,
      items: "webhooks",
      is_paged: true,
      what: "The webhooks",
      columns: ["id", "state", "url", "types", "services", "created_at", "project_id"],
    },
    {
      verb: "show",
      method: "GET",
      path: `${path}/{id}`,
      what: "One webhook, and how its deliveries fare",
    },
    {
      verb: "create",
      method: "POST",
      path,
      what: "Make a webhook; its secret is shown this once",
      example: "almanac webhooks create --url https://example.org/hook --type backup_completed",
      body: fieldsOf(NewWebhook),
    },
    {
      verb: "update",
      method: "PATCH",
      path: `${path}/{id}`,
      what: "Change a webhook, pause it or enable it again",
      body: fieldsOf(WebhookPatch),
    },
    {
      verb: "delete",
      alias: "rm",
      method: "DELETE",
      path: `${path}/{id}`,
      done: "deleted",
      what: "Delete a webhook",
    },
    {
      verb: "rotate",
      method: "POST",
      path: `${path}/{id}/secret`,
      what: "Give it a new secret, which is shown this once",
      body: fieldsOf(NewSecret),
    },
    {
      verb: "ping",
      method: "POST",
      path: `${path}/{id}/test`,
      what: "Send it a ping, and see what comes back",
    },
    {
      verb: "replay",
      method: "POST",
      path: `${path}/{id}/replay`,
      what: "Send events again from a position",
      body: fieldsOf(NewReplay),
    },
    {
      verb: "dead-letters",
      method: "GET",
      path: `${path}/{id}/dead-letters`,
      what: "The events that were given up",
      items: "dead_letters",
      is_paged: true,
      columns: ["sequence", "event_type", "event_subject", "attempts", "given_up_at", "detail"],
    },
    {
      verb: "redeliver-all",
      method: "POST",
      path: `${path}/{id}/dead-letters/redeliver`,
      what: "Try the oldest dead letters again",
    },
    {
      verb: "redeliver",
      method: "POST",
      path: `${path}/{id}/dead-letters/{sequence}/redeliver`,
      what: "Try one dead letter again",
    },
  ],
}
