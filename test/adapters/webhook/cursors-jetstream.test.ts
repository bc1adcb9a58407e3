import { assert, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { WebhookCursors } from "#actors/system/webhooks/cursors.ts"
import { webhookCursorsJetStream } from "#adapters/system/webhook/cursors-jetstream.ts"
import { NatsConnection } from "#bus"
import { webhookCursorsContract } from "../../contract/webhook-cursors.ts"
import { describeWithServer, nats } from "../../world/programs/nats.ts"

const make = () => Layer.fresh(webhookCursorsJetStream(1).pipe(Layer.provideMerge(nats)))

describeWithServer("webhooks' cursors in JetStream", () => {
  webhookCursorsContract(make)

  it.live("are forgotten once, and leave nothing where there was none", () =>
    Effect.gen(function* () {
      const { forget, save } = yield* WebhookCursors
      const { jsm } = yield* NatsConnection
      const last = Effect.promise(async () => (await jsm.streams.info("KV_ALMANAC_WEBHOOKS")).state)
      yield* forget("never")
      assert.equal((yield* last).last_seq, 0)
      const none = { failing_since_ms: null, last_success_ms: null, last_failure: null }
      yield* save("a", { ...none, replay: 0, read: 1, open: [] }, 0)
      yield* forget("a")
      yield* forget("a")
      assert.equal((yield* last).last_seq, 2)
    }).pipe(Effect.provide(make())),
  )
})
