/** `POST /v1/events/tickets` and `GET /v1/events?ticket=`. Source: decision 0173. */
import { randomBytes } from "node:crypto"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer, Stream } from "effect"
import { TestClock } from "effect/testing"
import { sealWith } from "#adapters/system/event-tickets.ts"
import { EventStreams, streamBudget } from "#gateway/budget.ts"
import { RequestContext } from "#gateway/request-context.ts"
import { EventTickets, type Tickets, ticketsWith } from "#gateway/ticket/tickets.ts"
import type { PublishedEvents } from "#projections/published-events.ts"
import { eventsMemory } from "../../world/publishing.ts"
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

const per_caller = 4

interface World {
  readonly url: string
  readonly tickets: Tickets
  readonly issue: (token?: string) => Promise<{ readonly status: number; readonly text: string }>
  readonly tell: (...events: Parameters<typeof tell>) => Promise<number>
}

/** Runs a test against its own server, whose tickets expire by the clock of `tickets`. */
const served = (name: string, body: (world: World) => Promise<void>) =>
  it.live(name, () => {
    const tickets = ticketsWith(sealWith(randomBytes(32)), per_caller)
    return Effect.gen(function* () {
      const { url } = yield* serveEvents
      const run = Effect.runPromiseWith(yield* Effect.context<PublishedEvents>())
      const issue = async (token?: string) => {
        const headers = token === undefined ? {} : { authorization: `Bearer ${token}` }
        const answer = await fetch(`${url}/tickets`, { method: "POST", headers })
        assert.equal(answer.headers.get("cache-control"), "no-store")
        return { status: answer.status, text: await answer.text() }
      }
      const world = {
        url,
        tickets,
        issue,
        tell: (...all: Parameters<typeof tell>) => run(tell(...all)),
      }
      yield* Effect.promise(() => body(world))
    }).pipe(
      Effect.scoped,
      Effect.provideService(EventTickets, tickets),
      Effect.provideService(
        EventStreams,
        streamBudget({ max_event_streams: 16, max_event_streams_per_caller: 2 }),
      ),
      Effect.provide(Layer.fresh(eventsMemory)),
    )
  })

/** The ticket in a response. */
const ticketOf = ({ status, text }: Awaited<ReturnType<World["issue"]>>) => {
  assert.equal(status, 201, text)
  const { ticket, expires_at } = JSON.parse(text) as { ticket: string; expires_at: string }
  const left_ms = Date.parse(expires_at) - Date.now()
  assert.isTrue(left_ms > 50_000 && left_ms <= 60_000, expires_at)
  return ticket
}

describe("a ticket over HTTP", () => {
  served("lets its caller see what the token lets it see, and nothing else", async (world) => {
    const mine = { service: "share-protection", aggregate: "job", type: "job_queued" } as const
    await world.tell(
      publishedEvent(1),
      publishedEvent(2, { ...mine, projectid: "p1" }),
      publishedEvent(3, { ...mine, projectid: "p2" }),
      publishedEvent(4, { ...mine, projectid: "p1" }),
      publishedEvent(5),
    )
    for (const [token, seen] of [
      ["one", [2, 4]],
      ["reader", [1, 5]],
      ["admin", [1, 2, 3, 4, 5]],
    ] as const) {
      const ticket = ticketOf(await world.issue(token))
      const reader = await read(`${world.url}?ticket=${ticket}&since=0`, undefined)
      await until(() => reader.blocks.length === seen.length)
      assert.deepEqual(
        reader.blocks.map(({ id }) => id),
        [...seen],
      )
      reader.leave()
    }
  })

  served("serves a reconnection, which says where it goes on by the header", async (world) => {
    await world.tell(publishedEvent(1), publishedEvent(2), publishedEvent(3))
    const url = `${world.url}?ticket=${ticketOf(await world.issue("admin"))}&since=0`
    const first = await read(url, undefined)
    await until(() => first.blocks.length === 3)
    first.leave()
    const second = await read(url, undefined, 2)
    await until(() => second.blocks.length === 1)
    assert.equal(second.blocks[0]?.id, 3)
    second.leave()
  })

  served("that is wrong, or expired, gets 401 in words that help", async (world) => {
    const { ticket } = await Effect.runPromise(
      world.tickets
        .issue("admin", { token: () => "admin" })
        .pipe(Effect.provide(TestClock.layer())),
    )
    for (const one of ["", "x", ticket, `${ticketOf(await world.issue("admin"))}A`]) {
      const reader = await read(`${world.url}?ticket=${one}`, undefined)
      const { status, code, detail } = error(reader)
      assert.deepEqual({ status, code }, { status: 401, code: "svc.unauthorized" }, one)
      assert.include(detail, "POST /v1/events/tickets")
      assert.match(reader.headers["www-authenticate"] ?? "", /Bearer/)
    }
  })

  served("is not a token, and opens only the stream", async (world) => {
    const ticket = ticketOf(await world.issue("admin"))
    assert.equal((await read(world.url, ticket)).status, 401)
    assert.equal((await world.issue(ticket)).status, 401)
    const again = await fetch(`${world.url}/tickets?ticket=${ticket}`, { method: "POST" })
    assert.equal(again.status, 401)
  })

  served("does not count where there is a token", async (world) => {
    const ticket = ticketOf(await world.issue("admin"))
    assert.equal((await read(`${world.url}?ticket=${ticket}`, "wrong")).status, 401)
    await world.tell(
      publishedEvent(1),
      publishedEvent(2, { service: "share-protection", projectid: "p1" }),
    )
    const reader = await read(`${world.url}?ticket=${ticket}&since=0`, "one")
    await until(() => reader.blocks.length === 1)
    assert.equal(reader.blocks[0]?.id, 2)
    reader.leave()
  })

  served("is issued to callers only, who may see something", async (world) => {
    assert.equal((await world.issue()).status, 401)
    assert.equal((await world.issue("wrong")).status, 401)
    const { status, text } = await world.issue("writer")
    assert.equal(status, 403)
    assert.include(text, "svc.forbidden")
  })

  served("is 429 beyond a caller's share, and another caller still gets one", async (world) => {
    for (let n = 0; n < per_caller; n++) ticketOf(await world.issue("one"))
    const { status, text } = await world.issue("one")
    assert.equal(status, 429)
    assert.include(text, "svc.quota_exceeded")
    ticketOf(await world.issue("two"))
  })

  served("opens streams on its caller's account", async (world) => {
    const ticket = ticketOf(await world.issue("one"))
    const byTicket = `${world.url}?ticket=${ticket}`
    const readers = [await read(byTicket, undefined), await read(world.url, "one")]
    assert.deepEqual(
      readers.map(({ status }) => status),
      [200, 200],
    )
    assert.equal((await read(byTicket, undefined)).status, 429)
    assert.equal((await read(world.url, "one")).status, 429)
    for (const { leave } of readers) leave()
  })
})

describe("a stream whose caller's token is revoked", () => {
  it.effect("ends within 15 seconds and states the reason", () =>
    Effect.gen(function* () {
      let is_valid = true
      const chunks: Array<string> = []
      const { caller, request_id, correlation_id, command_id } = yield* RequestContext
      const proof = { credentials: {}, holds: Effect.sync(() => is_valid) }
      const proven = RequestContext.of({ caller, request_id, correlation_id, command_id, proof })
      const body = yield* bodyOf({ query: {}, headers: {} }).pipe(
        Effect.provideService(RequestContext, proven),
      )
      const reading = yield* Effect.forkChild(
        Stream.runForEach(body, (chunk) =>
          Effect.sync(() => chunks.push(new TextDecoder().decode(chunk))),
        ),
      )
      yield* TestClock.adjust("40 seconds")
      assert.isUndefined(reading.pollUnsafe())
      is_valid = false
      yield* TestClock.adjust("15 seconds")
      assert.isDefined(reading.pollUnsafe())
      assert.equal(chunks.at(-1), ": the token is no longer valid\n")
    }).pipe(Effect.provide(Layer.fresh(eventsMemory)), asAdmin),
  )
})
