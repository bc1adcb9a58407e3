/**
 * Webhooks in virtual time: a seed determines the published events, the receiver's failures of
 * every kind, and kills of the deliverer between any two of its steps. Then the invariants are
 * checked: each event that a webhook wants was received or is a dead letter; first deliveries of
 * one subject are in order; no webhook receives another project's events; a stuck subject blocks no
 * other.
 */
import { Context, Deferred, Effect, Exit, Fiber, Layer, Logger, Scope, Stream } from "effect"
import { address, Commands } from "#actors/commands.ts"
import { host } from "#actors/host.ts"
import { Webhook } from "#actors/system/webhook.ts"
import { WebhookCursors } from "#actors/system/webhooks/cursors.ts"
import { deliverer } from "#actors/system/webhooks/deliverer.ts"
import { webhookCursorsMemory } from "#adapters/system/webhook/cursors-memory.ts"
import { webhookEvents } from "#adapters/system/webhook/events.ts"
import { Log } from "#events/log.ts"
import { logMemory } from "#journal"
import { PublishedEvents } from "#projections/published-events.ts"
import type { CloudEvent } from "#schemas/cloud-event.ts"
import { CreateWebhook, RedeliverLetters, type WebhookCommand } from "#schemas/system/webhook.ts"
import { eventsMemory } from "../../publishing.ts"
import { seeded } from "../../seeded.ts"
import { makeVirtualTime } from "../../virtual-time.ts"
import { publishedEvent } from "../events-served.ts"
import { heldUp, lawsBroken, lettersOf, missingOf } from "./laws.ts"
import {
  calm_ms,
  count,
  end_ms,
  hour_ms,
  isCalm,
  minute_ms,
  type Ports,
  ports,
  projects,
  type Subscriber,
  settled_ms,
  start_ms,
  subscribersOf,
  type World,
} from "./world.ts"

export interface Outcome {
  readonly seed: number
  readonly broken: string | undefined
  readonly tally: ReadonlyMap<string, number>
  readonly received: number
}

const disable_after_ms = 30 * 24 * hour_ms

/** Successive lives of the deliverer; sometimes the previous one is still running. */
const lives = Effect.fnUntraced(function* (world: World) {
  const { next, between } = world.random
  for (;;) {
    world.killed = yield* Deferred.make<void>()
    const { killed } = world
    world.steps_left = isCalm(world) ? Infinity : between(1, 250)
    const life = yield* Effect.forkChild(deliverer({ disable_after_ms }))
    yield* Deferred.await(killed)
    count(world, "a deliverer is killed")
    if (next() < 0.2) {
      count(world, "two deliverers at once")
      yield* Effect.forkChild(
        Effect.andThen(Effect.sleep(between(1, 10_000)), Fiber.interrupt(life)),
      )
    } else yield* Fiber.interrupt(life)
    yield* Effect.sleep(between(0, 2 * minute_ms))
  }
})

const service_types = [
  { service: "blob-storage", aggregate: "blob", type: "blob_stored" },
  { service: "share-protection", aggregate: "job", type: "job_queued" },
] as const

/** Publishes some events now and then, and many during faults. */
const publishing = Effect.fnUntraced(function* (world: World) {
  const { between } = world.random
  const published = yield* PublishedEvents
  let n = 0
  while (world.now() - start_ms < end_ms - hour_ms) {
    const is_late = world.now() - start_ms > calm_ms - minute_ms
    if (is_late) yield* Effect.sleep(15 * minute_ms)
    const events = Array.from({ length: between(1, 8) }, () => {
      const kind = service_types[between(0, 1)] ?? service_types[0]
      const projectid = [undefined, ...projects][between(0, 2)]
      return publishedEvent(++n, {
        ...kind,
        subject: is_late ? "s9" : `s${between(1, 9)}`,
        ...(projectid === undefined ? {} : { projectid }),
      })
    })
    yield* published.append(events, n - events.length)
    yield* Effect.sleep(between(1, 6) * minute_ms)
  }
})

const command = (id: string, command: WebhookCommand) =>
  Effect.flatMap(Commands, (commands) =>
    commands.send(
      { command_id: `${command.type}-${id}`, actor: "test", at: new Date(start_ms).toISOString() },
      address(Webhook, id, command),
    ),
  )

const created = ({ id, project_id, types, services }: Subscriber) =>
  command(
    id,
    CreateWebhook.make({
      url: "https://example.com",
      description: "",
      project_id,
      types,
      services,
      enabled: true,
      after: 0,
      key_id: "0123456789abcdef",
    }),
  )

/** Discards the logs of failures: there are thousands. */
const build = (scope: Scope.Scope) => {
  const events = Layer.provideMerge(webhookEvents, eventsMemory)
  const layers = Layer.mergeAll(
    Layer.provideMerge(host, logMemory),
    events,
    webhookCursorsMemory,
    Logger.layer([]),
  )
  return Effect.runSync(Scope.provide(Layer.build(Layer.fresh(layers)), scope))
}

type Real = ReturnType<typeof build>

const kept = <A>(
  real: Real,
  effect: Effect.Effect<A, unknown, Log | PublishedEvents | WebhookCursors>,
) => Effect.runSync(Effect.provideContext(Effect.orDie(effect), real))

/** Every event published so far. */
const published = Effect.gen(function* () {
  const { last, at } = yield* PublishedEvents
  const length = (yield* last)?.sequence ?? 0
  const sequences = Array.from({ length }, (_, n) => n + 1)
  // Every sequence up to the last one exists.
  return yield* Effect.forEach(sequences, (n) =>
    Effect.map(at(n), (one) => one?.event as CloudEvent),
  )
})

const commits = Effect.flatMap(Log, (log) => Stream.runCollect(log.read("")))

/** The events that are still to be delivered, according to a webhook's cursor. */
const openOf = (id: string) =>
  Effect.gen(function* () {
    const found = yield* (yield* WebhookCursors).load(id)
    return new Set(found?.cursor.open.map(({ sequence }) => sequence))
  })

/** One run, determined by its seed; reports a broken invariant, if any. */
export const simulate = (seed: number): Outcome => {
  const random = seeded(seed)
  const time = makeVirtualTime(start_ms, random)
  const scope = Effect.runSync(Scope.make())
  const real = build(scope)
  const world: World = {
    random,
    tally: new Map(),
    subscribers: subscribersOf(random),
    now: time.now,
    is_cured: false,
    steps_left: Infinity,
    killed: Deferred.makeUnsafe<void>(),
  }
  const { subscribers } = world
  const until = (ms: number) => {
    time.fork(Effect.sleep(Math.max(1, start_ms + ms - time.now())), Context.empty())
    time.run(() => time.now() - start_ms >= ms)
  }
  const living: Effect.Effect<unknown, unknown, Ports | PublishedEvents> = lives(world)

  time.fork(Effect.forEach(subscribers, created), real)
  time.fork(publishing(world), real)
  time.fork(living, Context.merge(real, ports(world, real)))
  until(settled_ms - 10 * minute_ms)
  const due = kept(real, published)
  until(settled_ms)
  const held = heldUp(subscribers, due)
  until(end_ms)
  const all = kept(real, published)
  const stored_by = kept(real, commits)
  const letters = new Map(subscribers.map(({ id }) => [id, lettersOf(stored_by, id)]))
  // Dead letters are delivered when they are redelivered on request.
  world.is_cured = true
  for (const [id, given_up] of letters) {
    if (given_up.size === 0) continue
    count(world, "dead letters are asked for again")
    time.fork(command(id, RedeliverLetters.make({ sequences: [...given_up.keys()] })), real)
  }
  const waiting = new Map(subscribers.map(({ id }) => [id, kept(real, openOf(id))]))
  const broken = held ?? lawsBroken(subscribers, all, { letters, waiting })
  until(end_ms + 2 * hour_ms)
  const missing = subscribers.find((one) => missingOf(one, all).length > 0)
  const not_again = missing && `${missing.id} did not get ${missingOf(missing, all)[0]} again`
  Effect.runSync(Scope.close(scope, Exit.void))
  const received = subscribers.reduce((sum, { received }) => sum + received.size, 0)
  return { seed, broken: broken ?? not_again, tally: world.tally, received }
}

export const tellBroken = ({ seed, broken, tally }: Outcome) =>
  `seed ${seed}: ${broken}\n${[...tally].map(([what, n]) => `  ${n} times ${what}`).join("\n")}`
