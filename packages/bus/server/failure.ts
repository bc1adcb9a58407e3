import { Schema } from "effect"

/** nats-server could not be started, kept running or ended; the message says what to do. */
export class NatsServerFailed extends Schema.TaggedError<NatsServerFailed>()("NatsServerFailed", {
  message: Schema.String,
}) {}
