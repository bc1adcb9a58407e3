/**
 * Subscribers across restores, releases, retention and losses of the stream: each receives every
 * event exactly once, or a notice of the events that are void. Source: decision 0172.
 */
import { assert, describe, it } from "@effect/vitest"
import { Context, Effect, Fiber, Logger, Schema, Stream } from "effect"
import { makeMemory, type Tampering } from "#adapters/published/memory.ts"
import { isPartOf, Log, LogUnavailable, type Recorded } from "#events/log.ts"
import { PublicationAnchored, publication_stream } from "#events/system/publication.ts"
import { LossAccepted, restoration_stream, StateRestored } from "#events/system/restoration.ts"
import { PublishedHistory } from "#projections/published/history.ts"
import { readAnchors } from "#projections/published/numbering.ts"
import { publisher } from "#projections/published/publisher.ts"
import { PublishedEvents, publication } from "#projections/published-events.ts"
import { published as published_system } from "#projections/system/published.ts"
import type { CloudEvent } from "#schemas/cloud-event.ts"
import { message } from "#schemas/message.ts"
import { seeded } from "../world/seeded.ts"

const Noted = message("Noted", { n: Schema.Int })

const notes = (types: ReadonlyArray<string>) =>
  publication({
    part: "test.note",
    event: Noted,
    toDraft: ({ n }) => {
      const type = ["odd", "even", "internal"][n % 3] ?? ""
      return types.includes(`test.${type}`) ? { type, data: { n } } : undefined
    },
  })

const types_before = ["test.even", "system.state_restored"]
const types = [...types_before, "test.odd"]
const of = (names: ReadonlyArray<string>) => ({
  publications: [notes(names), ...published_system],
  types: names,
  types_before,
})

/** A log that can be restored to an earlier state. */
const makeLog = () => {
  let commits: Array<Recorded> = []
  const head = () => commits.at(-1)?.position ?? 0
  const read = (part: string, after = 0) =>
    Stream.suspend(() =>
      Stream.fromIterable(
        commits.filter(({ position, stream }) => position > after && isPartOf(part, stream)),
      ),
    )
  const write = (stream: string, events: Recorded["commit"]["events"], context: unknown = {}) => {
    const position = head() + 1
    const at = new Date(1_800_000_000_000 + position).toISOString()
    const snapshot = { machine: 1, value: "open", context }
    const commit = { v: 1 as const, actor: "test", at, events, snapshot, commands: [], prev: "" }
    commits.push({ position, stream, commit, hash: `${position}` })
    return position
  }
  const log = Log.of({
    load: (stream) => Effect.sync(() => commits.findLast((one) => one.stream === stream)),
    append: () => Effect.fail(new LogUnavailable({ detail: "Tests write by themselves." })),
    read,
    follow: (part, after) => Stream.concat(read(part, after), Stream.never),
    lasts: () => Stream.empty,
    tip: () => Effect.succeed(undefined),
    entries: read,
    followEntries: read,
    end: Effect.sync(head),
    head: () => Effect.sync(head),
    hashOf: (text) => Buffer.from(text.padStart(8, "0")).toString("hex").slice(-8),
    digest: (data) => data,
  })
  let restores: ReadonlyArray<{ restore_id: string; position: number }> = []
  return {
    log,
    write,
    head,
    /** Loses commits in the middle, and records the loss. */
    lose: (from: number, to: number, restore_id: string) => {
      commits = commits.filter(({ position }) => position < from || position > to)
      const loss = { restore_id, position: head(), missing: [{ from, to }], reason: "a disk" }
      restores = [...restores, { restore_id, position: head() }]
      write(restoration_stream, [LossAccepted.make(loss)], { restores, accepted: loss.missing })
    },
    /** Restores the log to a position, and records the restore. */
    restore: (position: number, restore_id: string) => {
      commits = commits.slice(0, position)
      restores = [...restores.filter((one) => one.position < position), { restore_id, position }]
      const data = { restore_id, backup_id: "b", made_at: "2026-11-20T12:00:00.000Z", position }
      write(restoration_stream, [StateRestored.make(data)], { restores })
    },
  }
}

/** A subscriber that reads now and then, and remembers what it received. */
interface Subscriber {
  readonly wanted: { readonly types: ReadonlyArray<string> }
  was: { readonly epoch: string; readonly sequence: number } | undefined
  received: Array<CloudEvent>
  receipts: number
}

const makeWorld = Effect.gen(function* () {
  const made = makeLog()
  const { published, tampering } = yield* makeMemory
  const ports = Context.make(Log, made.log).pipe(Context.add(PublishedEvents, published))
  /** The published events that are still valid, numbered from 1. */
  let truth: Array<CloudEvent> = []
  let names: ReadonlyArray<string> = types_before
  const record = (anchor: Parameters<typeof PublicationAnchored.make>[0]) =>
    Effect.sync(() => made.write(publication_stream, [PublicationAnchored.make(anchor)]))

  const last = Effect.map(published.bounds, (bounds) => bounds?.last ?? -1)
  /** Publishes until nothing is left. */
  const publish = Effect.gen(function* () {
    const running = yield* Effect.forkChild(publisher(of(names), record))
    let before = -2
    for (let quiet = 0; quiet < 60; ) {
      yield* Effect.yieldNow
      const now = yield* last
      quiet = now === before ? quiet + 1 : 0
      before = now
    }
    yield* Fiber.interrupt(running)
    const { first } = (yield* published.bounds) ?? { first: 1 }
    for (let n = Math.max(first, truth.length + 1); n <= before; n++) {
      const kept = yield* published.at(n)
      if (kept !== undefined) truth[n - 1] = kept.event
    }
    assert.equal(before, truth.length)
  })
  const history = Effect.provide(PublishedHistory, PublishedHistory.layer(of(types))).pipe(
    Effect.provideContext(ports),
  )

  return {
    ...made,
    tampering: tampering satisfies Tampering,
    history: yield* history,
    publish: Effect.provideContext(publish, ports),
    truth: () => truth,
    upgrade: () => {
      names = types
    },
    restored: (position: number, id: string) => {
      made.restore(position, id)
      truth = truth.filter((event) => event.position <= position)
    },
    anchor: Effect.gen(function* () {
      const event = truth.at(-1)
      const anchors = yield* Effect.provideContext(readAnchors(of(names)), ports)
      if (event === undefined || (anchors.at(-1)?.sequence ?? 0) >= truth.length) return
      const index = Number(event.id.split(".")[1])
      const { position } = event
      yield* record({ sequence: truth.length, position, index, types: names })
    }),
  }
})

type World = Effect.Success<typeof makeWorld>

const isIt = ({ wanted }: Subscriber, { type }: CloudEvent) =>
  wanted.types.length === 0 || wanted.types.includes(type) || type === "state_restored"

/** Reads available events, up to `most`. */
const read = Effect.fnUntraced(function* (world: World, subscriber: Subscriber, most: number) {
  const { resume, follow } = world.history
  const from = yield* resume(subscriber.was ?? { sequence: 0 })
  if (from.restored !== undefined) {
    subscriber.receipts++
    const position = Number(from.restored.data.position)
    subscriber.received = subscriber.received.filter((event) => event.position <= position)
  }
  subscriber.was = { epoch: from.epoch, sequence: from.after }
  const left = world.truth().filter((event, n) => n >= from.after && isIt(subscriber, event))
  const count = Math.min(left.length, most)
  if (count === 0) return
  const some = yield* Stream.runCollect(Stream.take(follow(from.after, subscriber.wanted), count))
  subscriber.received.push(...some.map(({ event }) => event))
  subscriber.was = { epoch: from.epoch, sequence: some.at(-1)?.sequence ?? from.after }
})

const prove = (world: World, subscriber: Subscriber) => {
  const wanted = world.truth().filter((event) => isIt(subscriber, event))
  assert.deepEqual(
    subscriber.received.map(({ id }) => id),
    wanted.map(({ id }) => id),
  )
}

const seeds = Array.from({ length: 40 }, (_, i) => i + 1)

describe("the history of published events", () => {
  for (const seed of seeds) {
    it.live(`is sent to each subscriber exactly once, or marked as another (seed ${seed})`, () =>
      Effect.gen(function* () {
        const { between, pick, next } = seeded(seed)
        const world = yield* makeWorld
        const subscribers: ReadonlyArray<Subscriber> = [[], ["even"], ["odd", "even"], ["odd"]].map(
          (some) => ({ wanted: { types: some }, was: undefined, received: [], receipts: 0 }),
        )
        let n = 0
        let restores = 0
        const write = Effect.sync(() => {
          for (let i = between(1, 4); i > 0; i--) {
            const events = Array.from({ length: between(1, 5) }, () => Noted.make({ n: n++ }))
            world.write(`test.note.s${n}`, events)
          }
        })
        const restore = Effect.suspend(() => {
          const loss = next() < 0.5 ? world.tampering.lose : Effect.void
          world.restored(between(1, world.head()), `restore-${seed}-${++restores}`)
          return Effect.andThen(loss, world.publish)
        })
        const cut = Effect.suspend(() =>
          world.tampering.discard(between(1, world.truth().length + 1)),
        )
        const reading = Effect.suspend(() =>
          Effect.forEach(subscribers, (one) => read(world, one, between(1, 12))),
        )
        yield* write
        yield* world.publish
        for (let step = 0; step < 40; step++) {
          if (step === 20) {
            world.upgrade()
            yield* world.publish
          }
          yield* pick([write, write, restore, cut, reading, world.anchor, world.tampering.lose])
          yield* world.publish
        }
        yield* Effect.forEach(subscribers, (one) => read(world, one, Number.POSITIVE_INFINITY))
        for (const one of subscribers) prove(world, one)
      }).pipe(Effect.scoped, Effect.provide(Logger.layer([]))),
    )
  }

  it.live("reports accepted losses in place of events that no longer have a number", () =>
    Effect.gen(function* () {
      const world = yield* makeWorld
      for (let n = 0; n < 12; n++) world.write(`test.note.s${n}`, [Noted.make({ n })])
      yield* world.publish
      const kept = world.truth().length
      yield* world.tampering.discard(kept)
      world.lose(4, 6, "loss")
      yield* world.publish
      const end = yield* world.history.end
      const result = yield* world.history
        .follow(0, { types: ["odd"] })
        .pipe(Stream.take(2), Stream.runCollect)
      assert.deepEqual(
        result.map(({ event }) => [event.type, event.data.missing]),
        [
          ["state_restored", [{ from: 4, to: 6 }]],
          ["state_restored", [{ from: 4, to: 6 }]],
        ],
      )
      // The first notice takes their place; the second has the sequence of the last event.
      assert.deepEqual(
        result.map(({ sequence }) => sequence),
        [kept - 1, end],
      )
      const again = yield* world.history
        .follow(kept - 1, { types: [] })
        .pipe(Stream.take(2), Stream.runCollect)
      assert.deepEqual(
        again.map(({ sequence }) => sequence),
        [kept, end],
      )
    }).pipe(Effect.scoped, Effect.provide(Logger.layer([]))),
  )
})
