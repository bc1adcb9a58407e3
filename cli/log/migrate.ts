/** `almanac migrate`: creates or updates the streams and tables that this version needs. */

import { Console, Effect, Layer } from "effect"
import { Command } from "effect/cli"
import { publishedEventsJetStream } from "#adapters/published/jetstream.ts"
import { webhookCursorsJetStream } from "#adapters/system/webhook/cursors-jetstream.ts"
import { summaries } from "#cli/client/summaries.ts"
import { instance } from "#cli/instance.ts"
import { settings } from "#cli/root.ts"
import { Log } from "#events/log.ts"
import { PublishedEvents } from "#projections/published-events.ts"
import type { Settings } from "#schemas/settings.ts"
import { leasesOf, retentionOf } from "#server/infrastructure.ts"
import { databases, read_models } from "#server/read-models.ts"
import { exclusive } from "#server/session.ts"

/**
 * Brings everything to the log's last position, so that startup has nothing left to do; prints each
 * position.
 */
const migrateAll = Effect.fnUntraced(function* ({ audit }: Settings) {
  const log = yield* Log
  yield* Console.log(`log: at position ${yield* log.head("")}`)
  const published = yield* PublishedEvents
  const bounds = yield* published.bounds
  yield* Console.log(`published events: ${bounds?.last ?? 0}`)
  for (const [name, open] of read_models) {
    if (name === "system" && !audit.index) continue
    const model = yield* open
    yield* Console.log(`${name}: at position ${yield* model.position}`)
  }
})

export const migrate = Command.make(
  "migrate",
  {},
  Effect.fn(function* () {
    const configured = yield* settings
    const running = yield* instance(configured)
    if (running !== undefined) {
      return yield* Console.log(`process ${running.pid} uses this data folder, so it is up to date`)
    }
    const { replicas } = configured.nats
    const streams = Layer.mergeAll(
      publishedEventsJetStream(replicas, retentionOf(configured)),
      webhookCursorsJetStream(replicas),
      leasesOf(configured, "migrate"),
      databases(configured, true),
    ).pipe(Layer.provideMerge(exclusive(configured)))
    yield* migrateAll(configured).pipe(Effect.scoped, Effect.provide(streams))
  }),
).pipe(
  Command.withDescription(summaries.migrate),
  Command.withExamples([
    { command: "almanac migrate", description: "Before the first start of a new version" },
  ]),
)
