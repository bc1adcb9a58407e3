import { Layer } from "effect"
import { webhookCursorsJetStream } from "#adapters/webhook-cursors-jetstream.ts"
import { webhookCursorsContract } from "../contract/webhook-cursors.ts"
import { describeWithServer, nats } from "../nats.ts"

const make = () => Layer.fresh(webhookCursorsJetStream(1).pipe(Layer.provide(nats)))

describeWithServer("webhooks' cursors in JetStream", () => {
  webhookCursorsContract(make)
})
