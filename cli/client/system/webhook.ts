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
      what: "List the webhooks",
      columns: ["id", "state", "url", "types", "services", "created_at", "project_id"],
    },
    {
      command: "show",
      method: "GET",
      path: `${path}/{id}`,
      what: "Show one webhook and the state of its deliveries",
    },
    {
      command: "create",
      method: "POST",
      path,
      what: "Create a webhook; its secret is shown only once",
      example: "almanac webhooks create --url https://example.org/hook --type backup_completed",
      body: fieldsOf(NewWebhook),
    },
    {
      command: "update",
      method: "PATCH",
      path: `${path}/{id}`,
      what: "Change, pause or enable a webhook",
      example: "almanac webhooks update ID --no-enabled",
      body: fieldsOf(WebhookPatch),
    },
    {
      command: "delete",
      alias: "rm",
      method: "DELETE",
      path: `${path}/{id}`,
      done: "Webhook deleted.",
      what: "Delete a webhook",
    },
    {
      command: "rotate",
      method: "POST",
      path: `${path}/{id}/secret`,
      what: "Give a webhook a new secret, which is shown only once",
      body: fieldsOf(NewSecret),
    },
    {
      command: "ping",
      method: "POST",
      path: `${path}/{id}/test`,
      what: "Send a ping to a webhook and show the response",
    },
    {
      command: "replay",
      method: "POST",
      path: `${path}/{id}/replay`,
      what: "Resend the events after a position",
      example: "almanac webhooks replay ID --after 1200",
      body: fieldsOf(NewReplay),
    },
    {
      command: "dead-letters",
      method: "GET",
      path: `${path}/{id}/dead-letters`,
      what: "List the dead letters: events that could not be delivered",
      items: "dead_letters",
      is_paged: true,
      columns: ["sequence", "event_type", "event_subject", "attempts", "given_up_at", "detail"],
    },
    {
      command: "redeliver-all",
      method: "POST",
      path: `${path}/{id}/dead-letters/redeliver`,
      what: "Retry the oldest dead letters",
    },
    {
      command: "redeliver",
      method: "POST",
      path: `${path}/{id}/dead-letters/{sequence}/redeliver`,
      what: "Retry one dead letter",
    },
  ],
}
