/** Webhooks in a server: their adapters, the ports of their API, and their delivery. */
import { Context, Effect, Layer } from "effect"
import { Commands } from "#actors/commands.ts"
import { WebhookCursors } from "#actors/system/webhooks/cursors.ts"
import { deliverer } from "#actors/system/webhooks/deliverer.ts"
import { WebhookSecrets, WebhookSender } from "#actors/system/webhooks/sender.ts"
import { webhookCursorsJetStream } from "#adapters/system/webhook/cursors-jetstream.ts"
import { webhookEvents } from "#adapters/system/webhook/events.ts"
import { webhookSecrets } from "#adapters/system/webhook/key.ts"
import { webhookSenderHttp } from "#adapters/system/webhook/sender-http.ts"
import { WebhookLimit } from "#gateway/system/webhooks.ts"
import { Transport } from "#gateway/transport.ts"
import { WebhookModel } from "#projections/system/webhook-model.ts"
import type { Settings } from "#schemas/settings.ts"
import { withLease } from "#server/lease.ts"

const day_ms = 86_400_000

/** The adapters for delivery and secrets. */
export const webhookAdapters = (settings: Settings) =>
  Layer.mergeAll(
    webhookEvents,
    webhookCursorsJetStream(settings.nats.replicas),
    webhookSenderHttp(settings).pipe(Layer.provideMerge(webhookSecrets(settings))),
  )

/** The ports that only the webhook API needs. */
export const webhookPorts = ({ webhooks }: Settings) =>
  Effect.map(
    Effect.context<
      (Commands | Transport | WebhookModel) | (WebhookCursors | WebhookSecrets | WebhookSender)
    >(),
    (around) =>
      around.pipe(
        Context.pick(
          Commands,
          Transport,
          WebhookModel,
          WebhookCursors,
          WebhookSecrets,
          WebhookSender,
        ),
        Context.add(WebhookLimit, webhooks.max_per_project),
      ),
  )

/** Delivers in the background whenever this node holds the lease. */
export const deliverWebhooks = ({ webhooks }: Settings, node_id: string) =>
  withLease("system-webhooks", node_id, () =>
    deliverer({ disable_after_ms: webhooks.disable_after_days * day_ms }),
  )
