/** Finds the nats-server to run; the launcher knows where to look and which versions do. */
import { Effect, Schema } from "effect"
import { findBinary, missingBinary } from "../../launcher/binaries.mjs"

/** nats-server could not be started, kept or ended; the message says what to do. */
export class NatsServerFailed extends Schema.TaggedError<NatsServerFailed>()("NatsServerFailed", {
  message: Schema.String,
}) {}

/** The path of a nats-server that is new enough; fails with what to install. */
export const natsBinary = (configured?: string) =>
  Effect.suspend(() => {
    // An empty setting means "not configured".
    const options = { configured: configured || undefined }
    const found = findBinary("nats-server", options)
    return found
      ? Effect.succeed(found.path)
      : Effect.fail(new NatsServerFailed({ message: missingBinary("nats-server", options) }))
  })
