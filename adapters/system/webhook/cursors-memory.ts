/** Webhooks' cursors in memory: for tests. */
import { Effect, Layer } from "effect"
import {
  CursorsUnavailable,
  type KeptCursor,
  WebhookCursors,
} from "#actors/system/webhooks/cursors.ts"

export const webhookCursorsMemory = Layer.sync(WebhookCursors, () => {
  const cursors = new Map<string, KeptCursor>()
  return WebhookCursors.of({
    load: (id) => Effect.sync(() => cursors.get(id)),
    save: (id, cursor, change) =>
      Effect.suspend(() => {
        const last = cursors.get(id)?.change ?? 0
        if (last !== change) {
          const detail = `The last change is ${last}, not ${change}.`
          return Effect.fail(new CursorsUnavailable({ detail }))
        }
        cursors.set(id, { cursor, change: last + 1 })
        return Effect.succeed(last + 1)
      }),
    forget: (id) => Effect.sync(() => void cursors.delete(id)),
  })
})
