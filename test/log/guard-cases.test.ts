/**
 * The log's guard against an in-memory store that responds as nats-server 2.15 does after each kind
 * of damage (test/log/damage/README.md has the table, and starts of a real server). Each of 300
 * seeds has a log, damage, and possibly an earlier accepted loss; some logs were restored.
 *
 * Invariant: if commits are lost, they are reported as missing and the log is read-only; if none is
 * lost, or the loss was accepted, the log accepts writes.
 */

import { assert, describe, it } from "@effect/vitest"
import { Effect, Logger } from "effect"
import { type Missing, mergeMissing } from "#events/log-guard.ts"
import {
  checkAbsent,
  checkStream,
  type Mark,
  newWatch,
  type StreamQueries,
  sha256,
  type Watched,
} from "#journal"
import { seeded } from "../world/seeded.ts"

const seeds = Array.from({ length: 300 }, (_, i) => i + 1)
const commits_max = 60
const created = "2026-11-28T00:00:00.000Z"
const stream = "LOG"

interface Store {
  /** Message text by sequence. */
  messages: Map<number, string>
  /** The first sequence of the stream, and its last. */
  first: number
  last: number
  created: string
}

type Context = {
  restores: Array<{ restore_id: string; position: number }>
  accepted: Array<Missing>
}

/** The guard's JetStream queries, served from the store. */
const questionsTo = (store: Store, context: Context | undefined): StreamQueries => {
  const info: StreamQueries["streams"]["info"] = (_, options) => {
    const sequences = [...store.messages.keys()].toSorted((one, other) => one - other)
    const first_seq = sequences[0] ?? store.last + 1
    const deleted = Array.from({ length: store.last - first_seq + 1 }, (_, i) => first_seq + i)
    return Promise.resolve({
      config: { name: stream },
      created: store.created,
      state: {
        first_seq,
        last_seq: store.last,
        messages: sequences.length,
        ...(options?.deleted_details === true && {
          deleted: deleted.filter((sequence) => !store.messages.has(sequence)),
        }),
      },
    })
  }
  const restored = context && JSON.stringify({ snapshot: { context } })
  const getMessage: StreamQueries["streams"]["getMessage"] = (_, query) => {
    const text = "seq" in query ? store.messages.get(query.seq) : restored
    const found = text === undefined ? null : { data: Buffer.from(text), string: () => text }
    return Promise.resolve(found)
  }
  return { streams: { info, getMessage } }
}

/** The state outside the store: the mark, and a read model that may lag behind it. */
interface Known {
  readonly mark: Mark
  readonly found: number
}

const damages = {
  nothing: () => {},
  "a hole in the middle": (store: Store, between: Between) => {
    const from = between(2, store.last - 1)
    const to = Math.min(store.last - 1, from + between(0, 9))
    for (let n = from; n <= to; n++) store.messages.delete(n)
  },
  "two holes": (store: Store, between: Between) => {
    for (let i = 0; i < 2; i++) store.messages.delete(between(2, store.last - 1))
  },
  "a lost front": (store: Store, between: Between) => {
    for (let n = between(1, store.last - 1); n >= 1; n--) store.messages.delete(n)
  },
  "a cut tail": (store: Store, between: Between) => {
    const last = between(1, store.last - 1)
    for (let n = last + 1; n <= store.last; n++) store.messages.delete(n)
    store.last = last
  },
  "a hole and a cut tail": (store: Store, between: Between) => {
    damages["a cut tail"](store, between)
    if (store.last > 2) store.messages.delete(between(2, store.last - 1))
  },
  "an empty stream": (store: Store) => {
    store.messages.clear()
    store.last = 0
  },
  "another log": (store: Store) => {
    store.created = "2026-11-29T00:00:00.000Z"
    for (const n of store.messages.keys()) store.messages.set(n, `other ${n}`)
  },
  "a changed last commit": (store: Store) => {
    store.messages.set(store.last, "changed")
  },
} satisfies Readonly<Record<string, (store: Store, between: Between) => void>>

type Between = ReturnType<typeof seeded>["between"]

const names = Object.keys(damages) as Array<keyof typeof damages>

/** A log and what is known about it, in some cases after an accepted loss. */
const makeCase = (seed: number) => {
  const { between, next } = seeded(seed)
  const last = between(4, commits_max)
  const textAt = (n: number) => `commit ${n}`
  const store: Store = { messages: new Map(), first: 1, last, created }
  for (let n = 1; n <= last; n++) store.messages.set(n, textAt(n))
  const before = next()
  let context: Context | undefined
  if (before < 0.25) {
    const from = between(2, last - 1)
    store.messages.delete(from)
    context = {
      restores: [{ restore_id: "loss", position: between(from, last) }],
      accepted: [{ from, to: from }],
    }
  }
  const mark: Mark = {
    position: last,
    hash: sha256(textAt(last)),
    stream,
    stream_created: created,
    restore_id: context === undefined ? null : "loss",
  }
  const known: Known = { mark, found: between(1, last) }
  return { store, context, known, between, truth: new Map(store.messages) }
}

const isWithin = (position: number, missing: ReadonlyArray<Missing>) =>
  missing.some(({ from, to }) => from <= position && position <= to)

describe("the guard of the log", () => {
  it("has every damage among its cases", () => {
    const drawn = new Set(seeds.map((seed) => names[seed % names.length]))
    assert.equal(drawn.size, names.length)
  })

  for (const seed of seeds) {
    const name = names[seed % names.length] ?? "nothing"
    it.effect(`keeps the law after ${name} (seed ${seed})`, () =>
      Effect.gen(function* () {
        const { store, context, known, between, truth } = makeCase(seed)
        damages[name](store, between)
        const watch = newWatch(known.mark)
        const jsm = questionsTo(store, context)
        const watched: Watched = { jsm, stream, head: "commit", first: 1, base: 0 }
        yield* checkStream(watch, watched)
        // A read model that contains a commit that the log has lost reports it too.
        const found = truth.get(known.found)
        if (found !== undefined && store.messages.get(known.found) !== found) {
          yield* watch.isExplained({ name: "a read model", position: known.found }, store.last)
        }
        const missing = mergeMissing(watch.findings().flatMap((finding) => finding.missing))
        const lost = [...truth].filter(([n, text]) => store.messages.get(n) !== text)
        const unnamed = lost.map(([n]) => n).filter((n) => !isWithin(n, missing))
        assert.deepEqual(unnamed, [], "neither there nor named")
        assert.equal(watch.problem() !== undefined, lost.length > 0)
      }).pipe(Effect.provide(Logger.layer([]))),
    )
  }

  for (const seed of seeds.slice(0, 20)) {
    it.effect(`takes a log that was restored to an earlier position for whole (seed ${seed})`, () =>
      Effect.gen(function* () {
        const { store, known, between } = makeCase(seed)
        const position = between(1, store.last - 1)
        for (let n = position + 1; n <= store.last; n++) store.messages.delete(n)
        store.last = position + 1
        store.messages.set(store.last, "the restore")
        store.created = "2026-11-29T00:00:00.000Z"
        for (let n = 1; n <= position; n++) store.messages.set(n, `commit ${n}`)
        const context = { restores: [{ restore_id: "restore", position }], accepted: [] }
        const watch = newWatch({ ...known.mark, restore_id: null })
        const jsm = questionsTo(store, context)
        yield* checkStream(watch, { jsm, stream, head: "commit", first: 1, base: 0 })
        assert.isUndefined(watch.problem())
      }).pipe(Effect.provide(Logger.layer([]))),
    )
  }

  it.effect("names all of a log whose stream is gone", () =>
    Effect.gen(function* () {
      const { known } = makeCase(1)
      const watch = newWatch(known.mark)
      yield* checkAbsent(watch)
      const missing = mergeMissing(watch.findings().flatMap((finding) => finding.missing))
      assert.deepEqual(missing, [{ from: 1, to: known.mark.position }])
    }).pipe(Effect.provide(Logger.layer([]))),
  )
})
