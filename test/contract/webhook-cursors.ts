/** Contract of every WebhookCursors adapter. */
import { assert, it } from "@effect/vitest"
import { Effect, type Layer } from "effect"
import { type WebhookCursor, WebhookCursors } from "#actors/system/webhooks/cursors.ts"

const cursor = (read: number): WebhookCursor => ({
  replay: 1,
  read,
  failing_since_ms: 5,
  last_success_ms: null,
  last_failure: { at_ms: 7, detail: "It answered 500." },
  open: [
    { sequence: 3, attempts: 2, blamed: 1, first_failed_ms: 4, last_failed_ms: 5, next_ms: 9 },
    { sequence: 4, attempts: 0, is_behind: true },
  ],
})

export const webhookCursorsContract = <E>(make: () => Layer.Layer<WebhookCursors, E>) => {
  const kept = (name: string, body: Effect.Effect<void, unknown, WebhookCursors>) =>
    it.live(name, () => body.pipe(Effect.provide(make())))

  kept(
    "answers the last cursor of each webhook as it was saved, and nothing of one that was not",
    Effect.gen(function* () {
      const { load, save } = yield* WebhookCursors
      assert.isUndefined(yield* load("a"))
      const first = yield* save("a", cursor(1), 0)
      const second = yield* save("a", cursor(2), first)
      yield* save("b", cursor(9), 0)
      assert.deepEqual(yield* load("a"), { cursor: cursor(2), change: second })
      assert.deepEqual((yield* load("b"))?.cursor, cursor(9))
    }),
  )

  kept(
    "refuses to save over a change that the deliverer does not know",
    Effect.gen(function* () {
      const { load, save } = yield* WebhookCursors
      const first = yield* save("a", cursor(1), 0)
      const second = yield* save("a", cursor(2), first)
      for (const stale of [0, first]) yield* Effect.flip(save("a", cursor(3), stale))
      assert.deepEqual(yield* load("a"), { cursor: cursor(2), change: second })
    }),
  )

  kept(
    "forgets a webhook's cursor, also one that was never there",
    Effect.gen(function* () {
      const { load, save, forget } = yield* WebhookCursors
      yield* save("a", cursor(1), 0)
      yield* forget("a")
      yield* forget("never")
      assert.isUndefined(yield* load("a"))
    }),
  )
}
