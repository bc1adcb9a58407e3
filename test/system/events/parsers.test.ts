/**
 * The stream as third-party parsers read it, from its first block: each event once and no empty
 * event. test/process/pages/events-browser.test.ts covers Chromium's parser. Also tested by hand:
 * httpx-sse 0.4.3, sseclient-py 1.9.0, eventsource-parser 4.1.3; the first emits an empty event for
 * each block without data, so every block needs data.
 */
import { randomBytes } from "node:crypto"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer, Stream } from "effect"
import { Sse } from "effect/encoding"
import { EventSource } from "undici"
import { sealWith } from "#adapters/system/event-tickets.ts"
import { eventsIn } from "#cli/client/system/events.ts"
import { EventTickets, ticketsWith } from "#gateway/ticket/tickets.ts"
import type { PublishedEvents } from "#projections/published-events.ts"
import { eventsMemory } from "../../world/publishing.ts"
import {
  asAdmin,
  bodyOf,
  publishedEvent,
  serveEvents,
  tell,
  until,
} from "../../world/system/events-served.ts"

/** Reads the stream at this URL, and reports every event that the parser emits. */
type Reads = (url: string, ticket: string, onEvent: (of: string) => void) => () => void

const lineOf = (type: string, id: string, data: string) =>
  `${type} ${id.replace(/^\w+-/, "")} ${data === "" ? "empty" : "whole"}`

const byFetch =
  (
    parse: (body: AsyncIterable<Uint8Array>, onEvent: (of: string) => void) => Promise<void>,
  ): Reads =>
  (url, ticket, onEvent) => {
    const stop = new AbortController()
    const reading = async () => {
      const { body } = await fetch(`${url}?ticket=${ticket}&since=0`, { signal: stop.signal })
      if (body === null) return assert.fail("no body")
      await parse(body, onEvent)
    }
    void reading().catch(() => undefined)
    return () => stop.abort()
  }

const parsers: Readonly<Record<string, Reads>> = {
  "undici's EventSource": (url, ticket, onEvent) => {
    const source = new EventSource(`${url}?ticket=${ticket}&since=0`)
    const report = (event: object) => {
      // The types of undici's events are not those of Node; both have these.
      const { type, lastEventId, data } = event as Record<"type" | "lastEventId" | "data", string>
      onEvent(lineOf(type, lastEventId, data))
    }
    source.onmessage = report
    source.addEventListener("blob_stored", report)
    return () => source.close()
  },
  "effect's parser": byFetch(async (body, onEvent) => {
    const parser = Sse.makeParser((event) => {
      if (event._tag === "Event") onEvent(lineOf(event.event, event.id ?? "", event.data))
    })
    const decoder = new TextDecoder()
    for await (const part of body) parser.feed(decoder.decode(part, { stream: true }))
  }),
  "the parser of almanac events follow": byFetch(async (body, onEvent) => {
    for await (const { id, data } of eventsIn(body)) onEvent(lineOf("blob_stored", id, data))
  }),
}

describe("a stream of events", () => {
  for (const [name, reads] of Object.entries(parsers)) {
    it.live(`is what it is to ${name}`, () =>
      Effect.gen(function* () {
        const { url } = yield* serveEvents
        const run = Effect.runPromiseWith(yield* Effect.context<PublishedEvents>())
        const issue = { method: "POST", headers: { authorization: "Bearer admin" } }
        yield* Effect.promise(async () => {
          const answer = await fetch(`${url}/tickets`, issue)
          const { ticket } = (await answer.json()) as { ticket: string }
          const seen: Array<string> = []
          const leave = reads(url, ticket, (one) => seen.push(one))
          // The first block arrives alone.
          await new Promise((resume) => setTimeout(resume, 100))
          await run(tell(publishedEvent(1)))
          await until(() => seen.length > 0)
          await run(tell(publishedEvent(2), publishedEvent(3)))
          await until(() => seen.length >= 3)
          leave()
          assert.deepEqual(
            seen,
            [1, 2, 3].map((n) => `blob_stored ${n} whole`),
          )
        })
      }).pipe(
        Effect.scoped,
        Effect.provideService(EventTickets, ticketsWith(sealWith(randomBytes(32)), 4)),
        Effect.provide(Layer.fresh(eventsMemory)),
      ),
    )
  }

  it.live("has no block without data", () =>
    Effect.gen(function* () {
      yield* tell(publishedEvent(1), publishedEvent(2))
      const chunks = yield* Stream.runCollect(
        Stream.take(yield* bodyOf({ query: { since: "0" }, headers: {} }), 3),
      )
      const text = chunks.map((chunk) => new TextDecoder().decode(chunk)).join("")
      const blocks = text.split("\n\n").slice(0, -1)
      assert.isAtLeast(blocks.length, 2)
      for (const block of blocks) assert.match(block, /^data: ./m)
    }).pipe(Effect.provide(Layer.fresh(eventsMemory)), asAdmin),
  )
})
