/**
 * The process that delivers for every active webhook; a lease elects one instance.
 *
 * It stores nothing: the log has the webhooks, and each webhook's cursor has its progress.
 *
 * Source: issue 10 §3; decision 0131.
 */
import { Effect, Exit, Fiber, Schedule, Scope, Stream } from "effect"
import { Webhook, type WebhookNow, webhookAfter } from "#actors/system/webhook.ts"
import { CursorsUnavailable, WebhookCursors } from "#actors/system/webhooks/cursors.ts"
import { type DeliveryOptions, deliver } from "#actors/system/webhooks/delivery.ts"
import { Log, parseStream, type Recorded } from "#events/log.ts"

/** Pause before a webhook continues after the bus was unavailable, in milliseconds. */
const retry_ms = 1_000

interface Running {
  readonly revision: number
  readonly stop: Effect.Effect<void>
}

/** Delivers one webhook's events until it is stopped; it retries after any failure. */
const started = Effect.fnUntraced(function* (
  id: string,
  webhook: WebhookNow,
  options: DeliveryOptions,
  scope: Scope.Scope,
) {
  const delivering = deliver(id, webhook, options).pipe(
    // A defect of one webhook must not stop the others.
    Effect.catchDefect((defect) => Effect.fail(new CursorsUnavailable({ detail: String(defect) }))),
    Effect.tapCause((cause) =>
      Effect.logWarning("The deliveries of a webhook restart after a failure.", cause),
    ),
    Effect.retry(Schedule.spaced(retry_ms)),
    Effect.annotateLogs("webhook", id),
  )
  const fiber = yield* Effect.forkIn(delivering, scope)
  return { revision: webhook.revision, stop: Fiber.interrupt(fiber) } satisfies Running
})

/** Runs until it is interrupted, or the log is unavailable. */
export const deliverer = Effect.fnUntraced(function* (options: DeliveryOptions) {
  const log = yield* Log
  const cursors = yield* WebhookCursors
  const scope = yield* Effect.acquireRelease(Scope.make(), (made) => Scope.close(made, Exit.void))
  const running = new Map<string, Running>()
  const seen = new Map<string, number>()

  const fold = Effect.fnUntraced(function* (recorded: Recorded) {
    const { id } = parseStream(recorded.stream)
    // A commit may be delivered twice: as the stream's last one and by following.
    if ((seen.get(id) ?? 0) >= recorded.position) return
    seen.set(id, recorded.position)
    const webhook = yield* webhookAfter(log, recorded)
    const now = running.get(id)
    if (now?.revision === webhook.revision && webhook.state === "active") return
    // Stop it before the next one starts: two would deliver out of order.
    if (now !== undefined) yield* now.stop
    running.delete(id)
    if (webhook.state === "active") running.set(id, yield* started(id, webhook, options, scope))
    if (webhook.state !== "deleted") return
    seen.delete(id)
    yield* Effect.ignore(cursors.forget(id))
  })

  const begin = yield* log.head(Webhook.name)
  yield* Stream.runForEach(log.lasts(Webhook.name), fold)
  return yield* Stream.runForEach(log.follow(Webhook.name, begin), fold)
}, Effect.scoped)
