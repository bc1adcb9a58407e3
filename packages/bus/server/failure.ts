import { Schema } from "effect"

/** nats-server could not be started, kept running or stopped; the message contains a remedy. */
export class NatsServerFailed extends Schema.TaggedError<NatsServerFailed>()("NatsServerFailed", {
  message: Schema.String,
}) {}
