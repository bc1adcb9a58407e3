/** Published events of the system service. */
import { Schema, Struct } from "effect"
import { RestorationEvent } from "#events/system/restoration.ts"
import { TokenEvent, TokenIssued } from "#events/system/token.ts"
import { WebhookEvent } from "#events/system/webhook.ts"
import { type EventDraftOf, publication } from "#projections/published-events.ts"
import type { published as types } from "#schemas/system/published.ts"
import { CreateWebhook } from "#schemas/system/webhook.ts"

type Draft = EventDraftOf<typeof types>

const decode = Schema.decodeUnknownSync(
  Schema.Struct(Struct.pick(CreateWebhook.fields, ["project_id"])),
)

/**
 * An event carries its webhook's project; a webhook for all events is visible to operators only.
 */
const webhook = publication({
  part: "system.webhook",
  event: WebhookEvent,
  toDraft: (event, { id: webhook_id, commit }): Draft | undefined => {
    const { project_id } = decode(commit.snapshot.context)
    const own = project_id === null ? {} : { project_id }
    switch (event.type) {
      case "WebhookCreated":
        return {
          type: "webhook_created",
          ...own,
          data: { webhook_id, is_enabled: event.enabled },
        }
      case "WebhookChanged": {
        const changed = Object.keys(event).filter((name) => name !== "type")
        return { type: "webhook_changed", ...own, data: { webhook_id, changed } }
      }
      case "WebhookEnabled":
        return { type: "webhook_enabled", ...own, data: { webhook_id } }
      case "WebhookPaused":
        return { type: "webhook_paused", ...own, data: { webhook_id } }
      case "WebhookDisabled": {
        const { reason, detail } = event
        return { type: "webhook_disabled", ...own, data: { webhook_id, reason, detail } }
      }
      case "WebhookSecretRotated": {
        const { previous_until } = event
        return { type: "webhook_secret_rotated", ...own, data: { webhook_id, previous_until } }
      }
      case "WebhookDeleted":
        return { type: "webhook_deleted", ...own, data: { webhook_id } }
      // Publishing deliveries would cause further deliveries.
      case "WebhookReplayStarted":
      case "WebhookDeliveriesAbandoned":
      case "WebhookRedeliveryStarted":
      case "WebhookRedeliveryEnded":
        return undefined
    }
  },
})

const restoration = publication({
  part: "system.restoration",
  event: RestorationEvent,
  toDraft: (event, { commit }): Draft => {
    if (event.type === "StateRestored") {
      return { type: "state_restored", data: Struct.omit(event, ["type"]) }
    }
    const { restore_id, position, missing } = event
    const data = { restore_id, backup_id: "", made_at: commit.at, position, missing }
    return { type: "state_restored", data }
  },
})

const decodeToken = Schema.decodeUnknownSync(
  Schema.Struct(Struct.pick(TokenIssued.fields, ["name", "project_id"])),
)

const token = publication({
  part: "system.token",
  event: TokenEvent,
  toDraft: (event, { commit }): Draft => {
    const { name, project_id } = decodeToken(commit.snapshot.context)
    const own = project_id === null ? {} : { project_id }
    if (event.type === "TokenRevoked") return { type: "token_revoked", ...own, data: { name } }
    const { scopes, roles, expires_at } = event
    return { type: "token_issued", ...own, data: { name, scopes, roles, expires_at } }
  },
})

export const published = [webhook, restoration, token]
