/** Tickets for event streams, without HTTP. Source: decision 0173. */
import { randomBytes } from "node:crypto"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Exit, Scope } from "effect"
import { TestClock } from "effect/testing"
import { sealWith } from "#adapters/system/event-tickets.ts"
import { ticket_chars_max, ticket_ms, ticketsWith } from "#gateway/ticket/tickets.ts"

const key = randomBytes(32)
const per_caller = 3
const ours = () => ticketsWith(sealWith(key), per_caller)
const grant = { token: () => "hunter2hunter2" }

describe("a ticket", () => {
  it.effect("carries the caller's credentials, and shows nothing of them", () =>
    Effect.gen(function* () {
      const tickets = ours()
      const certificate = { subjects: ["CN=a", "DNS:b"] }
      for (const [one, token] of [
        [grant, "hunter2hunter2"],
        [{ certificate }, undefined],
        [{}, undefined],
      ] as const) {
        const { ticket, expires_ms } = yield* tickets.issue("a", one)
        const opened = tickets.open(ticket, 0)
        assert.equal(opened?.token?.(), token)
        assert.deepEqual(opened?.certificate, "certificate" in one ? certificate : undefined)
        assert.match(ticket, /^[\w-]+$/)
        assert.notInclude(Buffer.from(ticket, "base64url").toString("latin1"), "hunter2")
        assert.equal(expires_ms, ticket_ms)
      }
    }),
  )

  it.effect("is another one each time, and none but ours opens", () =>
    Effect.gen(function* () {
      const tickets = ours()
      const { ticket } = yield* tickets.issue("a", grant)
      assert.notEqual(ticket, (yield* tickets.issue("a", grant)).ticket)
      const foreign = yield* ticketsWith(sealWith(randomBytes(32)), 9).issue("a", grant)
      const bytes = Buffer.from(ticket, "base64url")
      const turned = [...bytes.keys()].map((at) => {
        const other = Buffer.from(bytes)
        other[at] = (other[at] ?? 0) ^ 1
        return other.toString("base64url")
      })
      const cut = Array.from({ length: ticket.length }, (_, chars) => ticket.slice(0, chars))
      const others = [foreign.ticket, ...turned, ...cut, `${ticket}=`, ` ${ticket}`, `${ticket}A`]
      assert.deepEqual(
        others.filter((one) => tickets.open(one, 0) !== undefined),
        [],
      )
      assert.isDefined(tickets.open(ticket, 0))
    }),
  )

  it.effect("is valid for a minute, in another process with the same key too", () =>
    Effect.gen(function* () {
      const [tickets, elsewhere] = [ours(), ours()]
      const { ticket } = yield* tickets.issue("a", grant)
      for (const one of [tickets, elsewhere]) {
        assert.isDefined(one.open(ticket, ticket_ms - 1))
        assert.isUndefined(one.open(ticket, ticket_ms))
      }
    }),
  )

  it.effect("is valid while a stream is open with it, and for a minute afterwards", () =>
    Effect.gen(function* () {
      // Another gateway issued this ticket.
      const { ticket } = yield* ours().issue("a", grant)
      const tickets = ours()
      const [first, second] = [yield* Scope.make(), yield* Scope.make()]
      yield* Scope.provide(tickets.use("a", ticket), first)
      yield* Scope.provide(tickets.use("a", ticket), second)
      const hour_ms = 3_600_000
      yield* TestClock.setTime(hour_ms)
      yield* Scope.close(first, Exit.void)
      assert.isDefined(tickets.open(ticket, 2 * hour_ms))
      yield* Scope.close(second, Exit.void)
      assert.isDefined(tickets.open(ticket, hour_ms + ticket_ms - 1))
      assert.isUndefined(tickets.open(ticket, hour_ms + ticket_ms))
      // A reconnection renews the ticket.
      yield* Effect.scoped(tickets.use("a", ticket))
      yield* TestClock.setTime(2 * hour_ms)
      yield* tickets.issue("b", grant)
      assert.isUndefined(tickets.open(ticket, 2 * hour_ms))
    }),
  )

  it.effect("is refused to a caller that has its share, until one expires", () =>
    Effect.gen(function* () {
      const tickets = ours()
      const { ticket } = yield* tickets.issue("a", grant)
      for (let n = 1; n < per_caller; n++) yield* tickets.issue("a", grant)
      assert.equal(yield* Effect.flip(tickets.issue("a", grant)), "full")
      yield* tickets.issue("b", grant)
      const scope = yield* Scope.make()
      yield* Scope.provide(tickets.use("a", ticket), scope)
      yield* TestClock.setTime(ticket_ms)
      // The ticket with an open stream still counts.
      for (let n = 1; n < per_caller; n++) yield* tickets.issue("a", grant)
      assert.equal(yield* Effect.flip(tickets.issue("a", grant)), "full")
      yield* Scope.close(scope, Exit.void)
    }),
  )

  it.effect("is refused to a token that no URL has room for, and counts nothing", () =>
    Effect.gen(function* () {
      const tickets = ours()
      for (let n = 0; n < 2 * per_caller; n++) {
        const long = { token: () => "x".repeat(ticket_chars_max) }
        assert.equal(yield* Effect.flip(tickets.issue("a", long)), "long")
      }
      yield* tickets.issue("a", { token: () => "x".repeat(5_000) })
    }),
  )
})
