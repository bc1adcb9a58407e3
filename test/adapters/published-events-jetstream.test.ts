import { Layer } from "effect"
import { publishedEventsJetStream } from "#adapters/published-events-jetstream.ts"
import { publishedEventsContract } from "../contract/published-events.ts"
import { describeWithServer, nats } from "../nats.ts"

const make = () => Layer.fresh(publishedEventsJetStream(1).pipe(Layer.provide(nats)))

describeWithServer("published events in JetStream", () => {
  publishedEventsContract(make)
})
