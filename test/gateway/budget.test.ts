import { assert, describe, it } from "@effect/vitest"
import { Effect, Exit, Scope } from "effect"
import { budget, type Holder, holderOf } from "#gateway/budget.ts"
import type { Caller } from "#gateway/caller.ts"
import { callerNetwork } from "#schemas/caller-network.ts"

const caller = (actor: string, more: Partial<Caller> = {}): Caller => ({
  actor,
  kind: "static",
  scopes: new Set(),
  roles: new Set(),
  ...more,
})

const member = (actor: string) => holderOf(caller(actor, { project_id: "p" }), "192.0.2.1")
const admin = holderOf(caller("root", { roles: new Set(["admin"]) }), "192.0.2.1")
const unknown = (address: string) => holderOf(caller("anonymous", { kind: "noauth" }), address)

/** A limit of 20: 4 reserved for admins, 5 per caller, and thus 8 per project. */
const made = () => budget({ all_max: 20, caller_max: 5, admin_reserve: 4 })

/** Acquires for the holder until it is rejected; returns how many times it succeeded. */
const taking = Effect.fnUntraced(function* (
  { refusal, hold }: ReturnType<typeof made>,
  holder: Holder,
) {
  let taken = 0
  while (refusal(holder) === undefined && taken < 100) {
    yield* hold(holder)
    taken++
  }
  return [taken, refusal(holder)] as const
})

describe("a budget", () => {
  it.effect("is each caller's own, and half of it is for a project", () =>
    Effect.gen(function* () {
      const one = made()
      assert.deepEqual(yield* taking(one, member("a")), [5, "caller"])
      assert.deepEqual(yield* taking(one, member("b")), [3, "caller"])
      assert.deepEqual(yield* taking(one, holderOf(caller("c"), "")), [5, "caller"])
    }).pipe(Effect.scoped),
  )

  it.effect("leaves admins a reserve", () =>
    Effect.gen(function* () {
      const one = made()
      yield* one.hold({ names: [], is_admin: false }, 16)
      assert.deepEqual(yield* taking(one, member("a")), [0, "all"])
      assert.deepEqual(yield* taking(one, admin), [4, "all"])
    }).pipe(Effect.scoped),
  )

  it.effect("is free again when the scope closes", () =>
    Effect.gen(function* () {
      const one = made()
      const scope = yield* Scope.make()
      yield* Scope.provide(taking(one, member("a")), scope)
      assert.equal(one.refusal(member("a")), "caller")
      yield* Scope.close(scope, Exit.void)
      assert.equal(one.refusal(member("a")), undefined)
      assert.equal(one.held(), 0)
    }),
  )

  it.effect("takes what is larger than it where nothing else is held", () =>
    Effect.gen(function* () {
      const one = made()
      assert.equal(one.refusal(member("a"), 100), undefined)
      yield* one.hold(member("a"), 2)
      assert.equal(one.refusal(member("a"), 4), "caller")
    }).pipe(Effect.scoped),
  )

  it.effect("counts unknown callers by their network", () =>
    Effect.gen(function* () {
      const one = made()
      assert.deepEqual(yield* taking(one, unknown("2001:db8::1")), [5, "caller"])
      assert.equal(one.refusal(unknown("2001:db8:0:0:ffff::2")), "caller")
      assert.equal(one.refusal(unknown("2001:db8:0:1::1")), undefined)
    }).pipe(Effect.scoped),
  )
})

describe("a caller's network", () => {
  for (const [address, network] of [
    ["192.0.2.7", "192.0.2.7"],
    ["::ffff:192.0.2.7", "192.0.2.7"],
    ["2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"],
    ["2001:0DB8:1::5", "2001:db8:1:0::/64"],
    ["::1", "0:0:0:0::/64"],
    ["fe80::1%eth0", "fe80:0:0:0::/64"],
    ["", ""],
  ] as const) {
    it(`of ${address} is ${network}`, () => assert.equal(callerNetwork(address), network))
  }
})
