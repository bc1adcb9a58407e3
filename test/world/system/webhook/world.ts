/** The environment of the webhook simulation: failing receivers, and ports that can be killed. */
import { Context, Deferred, Effect, Stream } from "effect"
import { Commands, Unavailable } from "#actors/commands.ts"
import { CursorsUnavailable, WebhookCursors } from "#actors/system/webhooks/cursors.ts"
import { EventsUnavailable, WebhookEvents } from "#actors/system/webhooks/events.ts"
import {
  type Outcome as Answer,
  type Parcel,
  WebhookSender,
} from "#actors/system/webhooks/sender.ts"
import type { Log } from "#events/log.ts"
import type { Seeded } from "../../seeded.ts"

export const start_ms = Date.UTC(2026, 10, 22)
export const minute_ms = 60_000
export const hour_ms = 60 * minute_ms
/** The end of all faults, except for subjects that are always refused. */
export const calm_ms = 1.5 * hour_ms
/** Allows for the maximum pause of an hour, its probe, and the backlog. */
export const settled_ms = calm_ms + 2.5 * hour_ms
/** Long enough for the last attempt of events that are always refused. */
export const end_ms = calm_ms + 12 * hour_ms
const deadline_ms = 15_000
export const projects = ["p1", "p2"] as const

/** A webhook of the simulation. */
export interface Subscriber {
  readonly id: string
  readonly project_id: string | null
  readonly types: ReadonlyArray<string>
  readonly services: ReadonlyArray<string>
  /** Subjects that it refuses until it is cured. */
  readonly refused: ReadonlySet<string>
  /** Periods of downtime, as start and end. */
  readonly outages: ReadonlyArray<readonly [number, number]>
  /** Sequences in the order of their first delivery. */
  readonly received: Map<number, number>
}

const idOf = (n: number) => `00000000-0000-4000-8000-${String(n).padStart(12, "0")}`

export const subscribersOf = ({ next, between }: Seeded): ReadonlyArray<Subscriber> =>
  Array.from({ length: between(1, 3) }, (_, n) => ({
    id: idOf(n + 1),
    project_id: [null, ...projects][between(0, 2)] ?? null,
    types: next() < 0.3 ? ["blob_stored"] : [],
    services: next() < 0.3 ? ["blob-storage"] : [],
    refused: new Set(next() < 0.6 ? [`s${between(1, 6)}`] : []),
    outages: Array.from({ length: between(0, 2) }, () => {
      const from = between(0, hour_ms)
      return [from, from + between(minute_ms, hour_ms / 2)] as const
    }),
    received: new Map(),
  }))

/** The state of a run. */
export interface World {
  readonly random: Seeded
  readonly tally: Map<string, number>
  readonly subscribers: ReadonlyArray<Subscriber>
  readonly now: () => number
  /** Whether every receiver accepts everything. */
  is_cured: boolean
  /** Steps until the current deliverer is killed; Infinity if it is not. */
  steps_left: number
  killed: Deferred.Deferred<void>
}

export const count = ({ tally }: World, what: string) => tally.set(what, (tally.get(what) ?? 0) + 1)

export const isCalm = ({ now }: World) => now() - start_ms >= calm_ms

/** From this time on the deliverer is no longer killed. */
const isLate = ({ now }: World) => now() - start_ms >= end_ms - 2 * hour_ms

/** One step of the deliverer, which may be killed before or after it. */
const step = <A, E, R>(world: World, what: string, effect: Effect.Effect<A, E, R>) => {
  const reached = Effect.suspend(() => {
    // Commands are rare, so the deliverer is killed more often at them.
    const is_doomed = what === "a command" && !isLate(world) && world.random.next() < 0.1
    if (--world.steps_left > 0 && !is_doomed) return Effect.void
    count(world, `killed at ${what}`)
    return Effect.andThen(Deferred.succeed(world.killed, undefined), Effect.never)
  })
  return reached.pipe(
    Effect.andThen(effect),
    Effect.tap(() => reached),
  )
}

/** Fails sometimes, before or after the effect. */
const faulty = <A, E, R>(
  world: World,
  what: string,
  effect: Effect.Effect<A, E, R>,
  failure: () => E,
) =>
  Effect.suspend(() => {
    if (isCalm(world) || world.random.next() >= 0.03) return effect
    if (world.random.next() < 0.5) {
      count(world, `${what} fails`)
      return Effect.fail(failure())
    }
    count(world, `the answer of ${what} is lost`)
    return Effect.andThen(effect, Effect.fail(failure()))
  })

const ok: Answer = { is_delivered: true, status: 200, detail: "It answered 200." }
const failed = (detail: string, more: Partial<Answer> = {}): Answer => ({
  is_delivered: false,
  detail,
  ...more,
})

/** A receiver's response, and whether it has accepted the event by then. */
const drawn = (
  world: World,
  { refused, outages }: Subscriber,
  { event }: Parcel,
): readonly [fault: string, takes: boolean, waits_ms: number, answer: Answer] => {
  const { next, between } = world.random
  const at = world.now() - start_ms
  const is_out = outages.some(([from, to]) => at >= from && at < to)
  if (!world.is_cured && refused.has(event.subject)) {
    return ["refuses", false, 5, failed("It answered 400.", { status: 400 })]
  }
  if (is_out && !world.is_cured) return ["is down", false, 1, failed("No answer: ECONNREFUSED.")]
  if (isCalm(world) || next() < 0.7) return ["takes", true, between(1, 200), ok]
  const late = failed("No answer: the deadline passed.")
  const busy = failed("It answered 429.", { status: 429, retry_after_ms: between(1, 120) * 1000 })
  const faults = [
    ["fails", false, 10, failed("It answered 500.", { status: 500 })],
    ["takes and fails", true, 10, failed("It answered 500.", { status: 500 })],
    ["stalls", false, deadline_ms, late],
    ["answers late", true, deadline_ms, late],
    ["cuts its answer", true, 20, failed("No answer: UND_ERR_SOCKET.")],
    ["is busy", false, 3, busy],
  ] as const
  return faults[between(0, faults.length - 1)] ?? faults[0]
}

/** The receivers, which are remote: a kill of the deliverer does not affect them. */
const senderOf = (world: World) =>
  WebhookSender.of({
    refusal: () => undefined,
    send: (parcel) =>
      step(
        world,
        "a try",
        Effect.gen(function* () {
          const subscriber = world.subscribers.find(({ id }) => id === parcel.webhook_id)
          if (subscriber === undefined) throw new Error(`Who is ${parcel.webhook_id}?`)
          const [fault, takes, waits_ms, answer] = drawn(world, subscriber, parcel)
          count(world, `a receiver ${fault}`)
          const { received } = subscriber
          const sequence = parcel.sequence ?? 0
          yield* Effect.sleep(waits_ms / 2)
          if (takes && received.has(sequence)) count(world, "an event came twice")
          if (takes && !received.has(sequence)) received.set(sequence, received.size)
          yield* Effect.sleep(waits_ms / 2)
          return answer
        }),
      ),
  })

export type Ports = Commands | WebhookCursors | WebhookEvents | WebhookSender | Log

/** The deliverer's ports: each call is a step that may fail. */
export const ports = (
  world: World,
  real: Context.Context<Commands | WebhookCursors | WebhookEvents | Log>,
) => {
  const commands = Context.get(real, Commands)
  const cursors = Context.get(real, WebhookCursors)
  const events = Context.get(real, WebhookEvents)
  const unavailable = () => new CursorsUnavailable({ detail: "out of reach" })
  const no_events = () => new EventsUnavailable({ detail: "out of reach" })
  return real.pipe(
    Context.add(
      Commands,
      Commands.of({
        send: (origin, ...batch) =>
          step(
            world,
            "a command",
            faulty(
              world,
              "a command",
              commands.send(origin, ...batch),
              () => new Unavailable({ detail: "out of reach" }),
            ),
          ),
      }),
    ),
    Context.add(
      WebhookCursors,
      WebhookCursors.of({
        load: (id) => step(world, "a load", faulty(world, "a load", cursors.load(id), unavailable)),
        save: (...args) =>
          step(world, "a save", faulty(world, "a save", cursors.save(...args), unavailable)),
        forget: cursors.forget,
      }),
    ),
    Context.add(
      WebhookEvents,
      WebhookEvents.of({
        resume: events.resume,
        follow: (...args) =>
          Stream.mapEffect(events.follow(...args), (one) =>
            step(world, "a read", faulty(world, "a read", Effect.succeed(one), no_events)),
          ),
        at: (sequence) =>
          step(world, "a look", faulty(world, "a look", events.at(sequence), no_events)),
      }),
    ),
    Context.add(WebhookSender, senderOf(world)),
  )
}
