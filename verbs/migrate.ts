/** `almanac migrate`: what this version needs, made or brought up to date. */
import { Console, Effect, Layer } from "effect"
import { Command } from "effect/cli"
import { publishedEventsJetStream } from "#adapters/published-events-jetstream.ts"
import { Log } from "#events/log.ts"
import { PublishedEvents } from "#projections/published-events.ts"
import { instance } from "#verbs/instance.ts"
import { databases, read_models } from "#verbs/read-models.ts"
import { settings } from "#verbs/root.ts"
import { exclusive } from "#verbs/session.ts"

const all = Effect.gen(function* () {
  const log = yield* Log
  yield* Console.log(`log: at position ${yield* log.head("")}`)
  const published = yield* PublishedEvents
  const last = yield* published.last
  yield* Console.log(`published events: ${last?.sequence ?? 0}`)
  for (const [name, open] of read_models) {
    const model = yield* open
    yield* Console.log(`${name}: shows position ${yield* model.position}`)
  }
})

export const migrate = Command.make(
  "migrate",
  {},
  Effect.fn(function* () {
    const configured = yield* settings
    const running = yield* instance(configured)
    if (running !== undefined) {
      return yield* Console.log(`process ${running.pid} runs on this folder: it is up to date`)
    }
    const { replicas } = configured.nats
    const bus = Layer.provideMerge(publishedEventsJetStream(replicas), exclusive(configured))
    yield* all.pipe(Effect.scoped, Effect.provide(Layer.merge(bus, databases(configured))))
  }),
).pipe(
  Command.withDescription("Make streams and tables, or bring them up to date; safe to repeat"),
  Command.withExamples([
    { command: "almanac migrate", description: "Before the first start of a new version" },
  ]),
)
