/** `GET /v1/events`. Source: DECISIONS "published events". */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber, Layer, Scope, Stream } from "effect"
import { TestClock } from "effect/testing"
import { subscribe } from "#gateway/system/events.ts"
import { PublishedEvents, PublishFailed } from "#projections/published-events.ts"
import { eventsMemory, historyAlone } from "../../world/publishing.ts"
import {
  asAdmin,
  bodyOf,
  error,
  publishedEvent,
  read,
  serveEvents,
  tell,
  until,
} from "../../world/system/events-served.ts"

type Url = string

/** Runs a test against its own server with an in-memory bus. */
const served = (
  name: string,
  body: (
    url: Url,
    tell: (
      ...events: Parameters<typeof import("../../world/system/events-served.ts").tell>
    ) => Promise<number>,
    inFlight: () => number,
  ) => Promise<void>,
) =>
  it.live(name, () =>
    Effect.gen(function* () {
      const { url, inFlight } = yield* serveEvents
      const context = yield* Effect.context<PublishedEvents>()
      const run = Effect.runPromiseWith(context)
      yield* Effect.promise(() => body(url, (...events) => run(tell(...events)), inFlight))
    }).pipe(Effect.scoped, Effect.provide(Layer.fresh(eventsMemory))),
  )

const mine = { service: "share-protection", aggregate: "job", type: "job_queued" } as const

/** Two blob events, one event of each project, and one without a project. */
const mixed = [
  publishedEvent(1),
  publishedEvent(2, { ...mine, projectid: "p1" }),
  publishedEvent(3, { ...mine, projectid: "p2", type: "job_finished" }),
  publishedEvent(4, { ...mine, type: "worker_started" }),
  publishedEvent(5, { aggregate: "cluster", type: "node_joined", subject: "almanac" }),
]

const end = publishedEvent(6, { aggregate: "cluster", projectid: "p1" })

describe("access to events", () => {
  for (const [token, seen] of [
    ["admin", [1, 2, 3, 4, 5, 6]],
    ["reader", [1, 5, 6]],
    ["one", [2, 6]],
    ["both", [1, 3, 5, 6]],
  ] as const) {
    served(`the token ${token} sees ${seen.join(", ")} of six`, async (url, tell) => {
      await tell(...mixed)
      const reader = await read(url, token, 0)
      await tell(end)
      await until(() => reader.blocks.at(-1)?.id === 6)
      assert.deepEqual(
        reader.blocks.map(({ id }) => id),
        [...seen],
      )
      reader.leave()
    })
  }

  served("a project's token sees nothing of another project", async (url, tell) => {
    await tell(...mixed)
    const reader = await read(url, "two", 0)
    await until(() => reader.blocks.length === 1)
    assert.equal(reader.blocks[0]?.event.projectid, "p2")
    reader.leave()
  })

  served("a token of no project without blobs:read gets 403", async (url) => {
    const { status, code } = error(await read(url, "writer"))
    assert.deepEqual({ status, code }, { status: 403, code: "svc.forbidden" })
  })

  for (const token of [undefined, "wrong"]) {
    served(`${token ? "an unknown" : "no"} token gets 401`, async (url) => {
      const reader = await read(url, token)
      const { status, code } = error(reader)
      assert.deepEqual({ status, code }, { status: 401, code: "svc.unauthorized" })
      assert.match(reader.headers["www-authenticate"] ?? "", /Bearer/)
    })
  }
})

describe("what is asked for", () => {
  for (const [query, seen] of [
    ["service=share-protection", [2, 3, 4, 6]],
    ["type=job_queued", [2, 6]],
    ["service=blob-storage&type=node_joined", [5, 6]],
    ["subject=almanac", [5, 6]],
    ["service=share-protection&type=job_queued&subject=s2", [2, 6]],
    ["service=plant-disease", [6]],
  ] as const) {
    served(`${query} filters`, async (url, tell) => {
      await tell(...mixed)
      const reader = await read(`${url}?${query}`, "admin", 0)
      const request = Object.fromEntries(new URLSearchParams(query))
      await tell(publishedEvent(6, { ...mine, ...request }))
      await until(() => reader.blocks.at(-1)?.id === 6)
      assert.deepEqual(
        reader.blocks.map(({ id }) => id),
        [...seen],
      )
      reader.leave()
    })
  }

  for (const query of [
    "type=job_queued,node_joined",
    "type=job_queued&type=node_joined",
    "type=node_joined&type=job_queued,job_queued",
  ]) {
    served(`${query} has events of both types`, async (url, tell) => {
      await tell(...mixed)
      const reader = await read(`${url}?${query}`, "admin", 0)
      await tell(
        publishedEvent(6),
        publishedEvent(7, { aggregate: "cluster", type: "node_joined" }),
      )
      await until(() => reader.blocks.at(-1)?.id === 7)
      assert.deepEqual(
        reader.blocks.map(({ id }) => id),
        [2, 5, 7],
      )
      reader.leave()
    })
  }

  served("one unknown type among several is refused", async (url) => {
    const { status, detail } = error(await read(`${url}?type=job_queued,blob_saved`, "admin"))
    assert.equal(status, 400)
    assert.include(detail, "no event type blob_saved")
  })

  for (const filter of ["*", ">", "a.b", "a b", "", "x".repeat(65), "a\u0000"]) {
    for (const name of ["service", "type", "subject"]) {
      served(`${name}=${JSON.stringify(filter).slice(0, 12)} is refused`, async (url) => {
        const query = new URLSearchParams({ [name]: filter })
        const { status, code, detail } = error(await read(`${url}?${query}`, "admin"))
        assert.deepEqual({ status, code }, { status: 400, code: "svc.validation_error" })
        assert.include(detail, name)
      })
    }
  }

  for (const [query, output] of [
    ["service=plant-diseases", "no service plant-diseases; did you mean plant-disease?"],
    ["type=blob_saved", "no event type blob_saved; "],
  ] as const) {
    served(`${query}, which is never published, is rejected`, async (url) => {
      const { status, code, detail } = error(await read(`${url}?${query}`, "admin"))
      assert.deepEqual({ status, code }, { status: 400, code: "svc.validation_error" })
      assert.include(detail, output)
    })
  }

  for (const since of ["x", "-1", "1.5", "1e3", "0x1", "", "1".repeat(16), "1, 2"]) {
    served(`Last-Event-ID ${JSON.stringify(since)} is refused`, async (url) => {
      const { status, code } = error(await read(url, "admin", since))
      assert.deepEqual({ status, code }, { status: 400, code: "svc.validation_error" })
    })
  }
})

describe("where the stream begins", () => {
  served("without Last-Event-ID with what comes from now on", async (url, tell) => {
    await tell(...mixed)
    const reader = await read(url, "admin")
    await tell(publishedEvent(6), publishedEvent(7))
    await until(() => reader.blocks.length === 2)
    assert.deepEqual(
      reader.blocks.map(({ id }) => id),
      [6, 7],
    )
    reader.leave()
  })

  served(
    "after the event of Last-Event-ID, with each once and none left out",
    async (url, tell) => {
      const total = 700
      const numbers = Array.from({ length: total }, (_, i) => i + 1)
      await tell(...numbers.slice(0, 400).map((n) => publishedEvent(n)))
      const first = await read(url, "admin", 0)
      await until(() => first.blocks.length >= 100)
      first.leave()
      await first.ended
      const seen = first.blocks.map(({ id }) => id)
      const second = await read(url, "admin", seen.at(-1))
      await tell(...numbers.slice(400).map((n) => publishedEvent(n)))
      await until(() => seen.length + second.blocks.length >= total)
      assert.deepEqual([...seen, ...second.blocks.map(({ id }) => id)], numbers)
      assert.deepEqual(second.blocks.at(-1)?.event, publishedEvent(total).event)
      second.leave()
    },
  )

  served("after a Last-Event-ID beyond the end, once events have come to it", async (url, tell) => {
    // As if a killed bus had lost its last event, which is then published again.
    await tell(publishedEvent(1))
    const reading = read(url, "admin", 3)
    await tell(publishedEvent(2), publishedEvent(3))
    const reader = await reading
    await tell(publishedEvent(4))
    await until(() => reader.blocks.length > 0)
    assert.deepEqual(
      reader.blocks.map(({ id }) => id),
      [4],
    )
    reader.leave()
  })

  served("nowhere after a place that was never reached", async (url, tell) => {
    await tell(publishedEvent(1))
    const { status, code, detail } = error(await read(`${url}?since=2`, "admin"))
    assert.deepEqual({ status, code }, { status: 400, code: "svc.validation_error" })
    assert.equal(detail, "There is no event 2: the last event is 1.")
  })

  for (const [what, start] of [
    ["the sequence of ?since", "since=2"],
    ["Last-Event-ID, regardless of ?since", "since=0"],
    ["a time, with what was published then or later", "time"],
  ] as const) {
    served(`after ${what}`, async (url, tell) => {
      await tell(publishedEvent(1), publishedEvent(2))
      await new Promise((resume) => setTimeout(resume, 2))
      const query = start === "time" ? `since=${new Date().toISOString()}` : start
      await tell(publishedEvent(3))
      const reader = await read(`${url}?${query}`, "admin", start === "since=0" ? 2 : undefined)
      await until(() => reader.blocks.length > 0)
      assert.deepEqual(
        reader.blocks.map(({ id }) => id),
        [3],
      )
      reader.leave()
    })
  }

  served("nowhere where ?since is neither", async (url) => {
    for (const since of ["yesterday", "-1", "1.5", "2026-11-20", ""]) {
      const { status } = error(await read(`${url}?since=${since}`, "admin"))
      assert.equal(status, 400, since)
    }
  })

  it.effect("refuses a Last-Event-ID that nothing comes to, after a while", () =>
    Effect.gen(function* () {
      const headers = { query: {}, headers: { "last-event-id": "3" } }
      const refused = yield* Effect.forkChild(Effect.flip(subscribe(headers)))
      yield* TestClock.adjust("10 seconds")
      assert.equal((yield* Fiber.join(refused)).code, "svc.validation_error")
    }).pipe(Effect.provide(Layer.fresh(eventsMemory)), asAdmin),
  )
})

describe("how the stream flows", () => {
  served("an event has its sequence as id, its type, and itself on one line", async (url, tell) => {
    const odd = publishedEvent(1, {
      actor: "line\nbreak – ünïcode \u2028",
      data: { text: "a\n\nid: 9" },
    })
    const reader = await read(url, "admin", 0)
    await tell(odd)
    await until(() => reader.blocks.length === 1)
    const [first] = reader.blocks
    assert.deepEqual(reader.blocks, [
      { id: 1, epoch: first?.epoch ?? "", type: "blob_stored", event: odd.event },
    ])
    const { headers } = reader
    assert.match(headers["content-type"] ?? "", /^text\/event-stream/)
    assert.equal(headers["cache-control"], "no-store")
    reader.leave()
  })

  served("an event is delivered within a second of its append", async (url, tell) => {
    const reader = await read(url, "admin")
    for (let n = 1; n <= 20; n++) {
      await tell(publishedEvent(n))
      const begun = performance.now()
      await until(() => reader.blocks.length === n)
      assert.isBelow(performance.now() - begun, 1000)
    }
    reader.leave()
  })

  served("a client that leaves is released", async (url, tell, inFlight) => {
    const readers = await Promise.all([1, 2, 3].map(() => read(url, "admin")))
    assert.equal(inFlight(), 3)
    for (const { leave } of readers) leave()
    await until(() => inFlight() === 0)
    assert.equal(await tell(publishedEvent(1)), 1)
  })

  it.live("it ends when the server stops", () =>
    Effect.gen(function* () {
      const scope = yield* Scope.make()
      const { url } = yield* Scope.provide(serveEvents, scope)
      yield* tell(publishedEvent(1))
      const reader = yield* Effect.promise(() => read(url, "admin", 0))
      yield* Effect.promise(() => until(() => reader.blocks.length === 1))
      const begun = performance.now()
      yield* Scope.close(scope, yield* Effect.exit(Effect.void))
      assert.equal(yield* Effect.promise(() => reader.ended), "end")
      assert.isBelow(performance.now() - begun, 4000)
    }).pipe(Effect.provide(Layer.fresh(eventsMemory))),
  )

  it.effect("a comment comes every 15 seconds, also when nothing else does", () =>
    Effect.gen(function* () {
      const chunks: Array<string> = []
      yield* Effect.forkChild(
        Stream.runForEach(yield* bodyOf({ query: {}, headers: {} }), (chunk) =>
          Effect.sync(() => chunks.push(new TextDecoder().decode(chunk))),
        ),
      )
      const counts: Array<number> = []
      for (const wait of ["1 millis", "14990 millis", "10 millis", "15 seconds", "15 seconds"]) {
        yield* TestClock.adjust(wait as "1 millis")
        counts.push(chunks.length)
      }
      assert.deepEqual(counts, [1, 1, 2, 3, 4])
      assert.isTrue(chunks.every((text) => /^: [\w-]+\n(retry: \d+\n)?$/.test(text)))
    }).pipe(Effect.provide(Layer.fresh(eventsMemory)), asAdmin),
  )
})

/** An unreachable bus. */
const down = Effect.fail(new PublishFailed({ detail: "no route" }))
const gone = PublishedEvents.of({
  bounds: down,
  last: down,
  ready: down,
  recreate: () => down,
  at: () => down,
  next: () => down,
  append: () => down,
  follow: () => Stream.fromEffect(down),
})

const unreachable = Layer.provideMerge(historyAlone, Layer.succeed(PublishedEvents, gone))

describe("when there is no way", () => {
  it.live("a bus out of reach is 503 svc.backend_unavailable", () =>
    Effect.gen(function* () {
      const { url } = yield* serveEvents
      const { status, code } = error(yield* Effect.promise(() => read(url, "admin")))
      assert.deepEqual({ status, code }, { status: 503, code: "svc.backend_unavailable" })
    }).pipe(Effect.scoped, Effect.provide(unreachable)),
  )

  it.live("a bus that stays away ends the stream properly, to be resumed", () =>
    Effect.gen(function* () {
      const { url } = yield* serveEvents
      const reader = yield* Effect.promise(() => read(url, "admin", 0))
      assert.equal(yield* Effect.promise(() => reader.ended), "end")
    }).pipe(Effect.scoped, Effect.provide(unreachable)),
  )
})
