/** Delivery of one webhook while the log or the bus misbehaves. */
import { assert, describe, it } from "@effect/vitest"
import { Context, Effect, Fiber, Layer } from "effect"
import { TestClock } from "effect/testing"
import { Commands, Unavailable } from "#actors/commands.ts"
import type { WebhookNow } from "#actors/system/webhook.ts"
import { open_max } from "#actors/system/webhooks/backlog.ts"
import { WebhookCursors } from "#actors/system/webhooks/cursors.ts"
import { deliver } from "#actors/system/webhooks/delivery.ts"
import { WebhookSender } from "#actors/system/webhooks/sender.ts"
import { webhookCursorsMemory } from "#adapters/system/webhook/cursors-memory.ts"
import { webhookEvents } from "#adapters/system/webhook/events.ts"
import type { Letter } from "#schemas/system/webhook.ts"
import { eventsMemory } from "../../world/publishing.ts"
import { publishedEvent, tell } from "../../world/system/events-served.ts"

const webhook: WebhookNow = {
  url: "https://example.com",
  description: "",
  types: [],
  services: [],
  project_id: null,
  state: "active",
  revision: 1,
  replay: 0,
  after: 0,
  given_up: 0,
  redeliveries: [],
  secrets: [{ version: 1, key_id: "0123456789abcdef", until: null }],
}

const start_ms = Date.UTC(2026, 10, 22)

/** Counts requests to the log and the receiver, and controls whether the log is reachable. */
const makeWorld = () => ({
  is_log_up: true,
  requests: 0,
  tried: [] as number[],
  letters: [] as Letter[],
})
type World = ReturnType<typeof makeWorld>

/** A log that keeps dead letters, and a receiver that accepts only the subject `taken`. */
const layerOf = (world: World, taken: string) =>
  Layer.mergeAll(
    Layer.provideMerge(webhookEvents, eventsMemory),
    webhookCursorsMemory,
    Layer.succeedContext(
      Context.empty().pipe(
        Context.add(
          Commands,
          Commands.of({
            send: (_, { command }) =>
              Effect.suspend(() => {
                world.requests++
                if (!world.is_log_up) return Effect.fail(new Unavailable({ detail: "down" }))
                // The only command in these tests.
                const { letters } = command as { letters: ReadonlyArray<Letter> }
                world.letters.push(...letters)
                return Effect.succeed(world.requests)
              }),
          }),
        ),
        Context.add(
          WebhookSender,
          WebhookSender.of({
            refusal: () => undefined,
            send: ({ sequence = 0, event }) =>
              Effect.sync(() => {
                world.tried.push(sequence)
                const is_delivered = event.subject === taken
                return { is_delivered, detail: is_delivered ? "Taken." : "It answered 400." }
              }),
          }),
        ),
      ),
    ),
  ).pipe(Layer.fresh)

const started = Effect.andThen(
  TestClock.setTime(start_ms),
  Effect.forkChild(deliver("w", webhook, { disable_after_ms: Number.POSITIVE_INFINITY })),
)

describe("a webhook's delivery", () => {
  it.effect("asks a log that is out of reach now and then to take what fills all room", () => {
    const world = makeWorld()
    return Effect.gen(function* () {
      const events = Array.from({ length: open_max + 1 }, (_, n) =>
        publishedEvent(n + 1, { subject: "s" }),
      )
      yield* tell(...events)
      const fiber = yield* started
      world.is_log_up = false
      for (let s = 0; s < 120; s++) yield* TestClock.adjust("1 second")
      assert.isAbove(world.requests, 0)
      assert.isBelow(world.requests, 100)
      assert.isUndefined(fiber.pollUnsafe())
      world.is_log_up = true
      for (let s = 0; s < 120; s++) yield* TestClock.adjust("1 second")
      assert.isAtLeast(world.letters.length, open_max)
      // Events that were never tried wait for the one before them.
      for (const { first_failed_at } of world.letters) {
        assert.isAtLeast(Date.parse(first_failed_at), start_ms)
      }
      yield* Fiber.interrupt(fiber)
    }).pipe(Effect.provide(layerOf(world, "none")))
  })

  it.effect("waits for an open event that the bus has lost, and keeps the order then", () => {
    const world = makeWorld()
    return Effect.gen(function* () {
      const { save } = yield* WebhookCursors
      const open = [1, 2].map((sequence) => ({ sequence, attempts: 0 }))
      const none = { failing_since_ms: null, last_success_ms: null, last_failure: null }
      yield* save("w", { ...none, replay: 0, read: 2, open }, 0)
      const lost = yield* Fiber.await(yield* started)
      assert.equal(lost._tag, "Failure")
      assert.deepEqual(world.tried, [])
      yield* tell(publishedEvent(1, { subject: "s" }), publishedEvent(2, { subject: "s" }))
      const fiber = yield* started
      yield* TestClock.adjust("1 second")
      assert.deepEqual(world.tried, [1, 2])
      yield* Fiber.interrupt(fiber)
    }).pipe(Effect.provide(layerOf(world, "s")))
  })
})
