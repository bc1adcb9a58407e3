import { assert, it } from "@effect/vitest"
import { headers } from "@nats-io/transport-node"
import { Layer } from "effect"
import { headersOf, publishedEventsJetStream } from "#adapters/published/jetstream.ts"
import { publishedEventsContract } from "../../contract/published-events.ts"
import { describeWithServer, nats } from "../../world/programs/nats.ts"

const make = () => Layer.fresh(publishedEventsJetStream(1).pipe(Layer.provide(nats)))

describeWithServer("published events in JetStream", () => {
  publishedEventsContract(make)
})

it("sends the headers that the client would send", () => {
  const checks = [
    ["Nats-Msg-Id", "7.1.0199"],
    ["Nats-Expected-Last-Msg-Id", "7.0"],
    ["Nats-Batch-Sequence", "2"],
  ] as const
  const own = headers()
  for (const [name, value] of checks) own.set(name, value)
  // The client's types do not declare how it encodes headers.
  const { encode } = own as unknown as { readonly encode: () => Uint8Array }
  assert.deepEqual(headersOf(checks).encode(), encode.call(own))
})
