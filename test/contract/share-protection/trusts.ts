/** Contract of every identity service's trusts. */
import { inspect } from "node:util"
import { assert } from "@effect/vitest"
import { Effect, Redacted, Schema } from "effect"
import { type Delegation, denials, type Trusts } from "#actors/share-protection/ports/trusts.ts"
import type { ProjectId } from "#schemas/share-protection/id.ts"
import { TrustAccessDenied } from "#schemas/share-protection/rejection.ts"
import { ServiceInfo } from "#schemas/share-protection/service-info.ts"

export interface TrustOptions {
  /** The user with the role `member` in both projects; alice by default. */
  readonly trustor?: "alice" | "bob"
  readonly project?: "one" | "other"
  /** Almanac itself by default. */
  readonly trustee?: "us" | "somebody"
  readonly impersonation?: boolean
  readonly remaining_uses?: number
  readonly expires_in_s?: number
}

/** An identity service with two projects and two users. */
export interface TrustPlace {
  readonly trusts: Trusts["Service"]
  readonly projects: Readonly<Record<"one" | "other", ProjectId>>
  readonly users: Readonly<Record<"alice" | "bob", string>>
  readonly create: (options?: TrustOptions) => Effect.Effect<string, unknown>
  /** Creates a trust that has expired. */
  readonly createExpired: Effect.Effect<string, unknown>
  readonly revoke: (trust_id: string) => Effect.Effect<unknown, unknown>
  /** Removes alice's role in project `one`; `giveRole` restores it. */
  readonly takeRole: Effect.Effect<void, unknown>
  readonly giveRole: Effect.Effect<void, unknown>
  /** The project that other services accept this token for; undefined if none. */
  readonly projectOf: (delegation: Delegation) => Effect.Effect<string | undefined, unknown>
}

type Test = (name: string, body: (place: TrustPlace) => Effect.Effect<void, unknown>) => void

/** The reason why a trust is rejected. */
const refusal = <A, E>(effect: Effect.Effect<A, E>) =>
  Effect.map(Effect.flip(effect), (error) => {
    assert.instanceOf(error, TrustAccessDenied)
    return error instanceof TrustAccessDenied ? error.detail : ""
  })

export const trustsContract = (test: Test) => {
  test("a trust of this project and user for this service may be named", (place) =>
    Effect.gen(function* () {
      const { trusts, projects, users } = place
      const trust_id = yield* place.create()
      yield* trusts.verify(trust_id, { project_id: projects.one, user_id: users.alice })
      yield* trusts.verify(trust_id, { project_id: projects.one, user_id: null })
      const lasting = yield* place.create({ expires_in_s: 7200, trustor: "bob" })
      yield* trusts.verify(lasting, { project_id: projects.one, user_id: users.bob })
    }))

  test("a trust of another project, user or service may not", (place) =>
    Effect.gen(function* () {
      const { trusts, projects, users } = place
      const by = { project_id: projects.one, user_id: users.alice }
      const verify = (options: TrustOptions) =>
        Effect.flatMap(place.create(options), (id) => refusal(trusts.verify(id, by)))
      assert.strictEqual(yield* verify({ project: "other" }), denials.foreign)
      assert.strictEqual(yield* verify({ trustor: "bob" }), denials.foreign)
      assert.strictEqual(yield* verify({ trustee: "somebody" }), denials.foreign)
      const mine = yield* place.create()
      const from_other = trusts.verify(mine, { project_id: projects.other, user_id: null })
      assert.strictEqual(yield* refusal(from_other), denials.foreign)
    }))

  test("a trust that does not last, is counted or does not impersonate may not", (place) =>
    Effect.gen(function* () {
      const { trusts, projects, users } = place
      const by = { project_id: projects.one, user_id: users.alice }
      for (const options of [
        { expires_in_s: 3000 },
        { remaining_uses: 5 },
        { impersonation: false },
      ]) {
        const trust_id = yield* place.create(options)
        assert.strictEqual(yield* refusal(trusts.verify(trust_id, by)), denials.unfit)
      }
    }))

  test("a trust that is unknown, revoked or expired is gone for either use", (place) =>
    Effect.gen(function* () {
      const { trusts, projects, users } = place
      const by = { project_id: projects.one, user_id: users.alice }
      const revoked = yield* place.create()
      yield* place.revoke(revoked)
      for (const trust_id of ["0".repeat(32), revoked, yield* place.createExpired]) {
        assert.strictEqual(yield* refusal(trusts.verify(trust_id, by)), denials.gone)
        assert.strictEqual(yield* refusal(trusts.redeem(trust_id)), denials.gone)
      }
    }))

  test("a redeemed trust gives a token of its project, another one each time", (place) =>
    Effect.gen(function* () {
      const { trusts, projects } = place
      const trust_id = yield* place.create({ project: "other" })
      const first = yield* trusts.redeem(trust_id)
      const second = yield* trusts.redeem(trust_id)
      assert.notStrictEqual(Redacted.value(first.token), Redacted.value(second.token))
      for (const delegation of [first, second]) {
        assert.strictEqual(delegation.project_id, projects.other)
        assert.strictEqual(yield* place.projectOf(delegation), projects.other)
      }
    }))

  test("a trust without impersonation is redeemed all the same, a counted one so often", (place) =>
    Effect.gen(function* () {
      const { trusts } = place
      yield* trusts.redeem(yield* place.create({ impersonation: false }))
      const counted = yield* place.create({ remaining_uses: 1 })
      yield* trusts.redeem(counted)
      assert.strictEqual(yield* refusal(trusts.redeem(counted)), denials.gone)
    }))

  test("a trust to somebody else is not redeemed", (place) =>
    Effect.gen(function* () {
      yield* refusal(place.trusts.redeem(yield* place.create({ trustee: "somebody" })))
    }))

  test("a trust whose trustor lacks the role is powerless until the role is given back", (place) =>
    Effect.gen(function* () {
      const { trusts, projects } = place
      const trust_id = yield* place.create()
      const elsewhere = yield* place.create({ project: "other" })
      const before = yield* trusts.redeem(trust_id)
      yield* place.takeRole
      assert.strictEqual(yield* refusal(trusts.redeem(trust_id)), denials.powerless)
      assert.isUndefined(yield* place.projectOf(before))
      yield* trusts.redeem(elsewhere)
      yield* trusts.redeem(yield* place.create({ trustor: "bob" }))
      yield* place.giveRole
      const after = yield* trusts.redeem(trust_id)
      assert.strictEqual(yield* place.projectOf(after), projects.one)
      assert.strictEqual(yield* place.projectOf(before), projects.one)
    }))

  test("a token of a trust that is revoked is worth nothing at once", (place) =>
    Effect.gen(function* () {
      const trust_id = yield* place.create()
      const delegation = yield* place.trusts.redeem(trust_id)
      assert.isDefined(yield* place.projectOf(delegation))
      yield* place.revoke(trust_id)
      assert.isUndefined(yield* place.projectOf(delegation))
    }))

  test("a token does not show when its delegation is printed", (place) =>
    Effect.gen(function* () {
      const delegation = yield* place.trusts.redeem(yield* place.create())
      const printed = `${inspect(delegation, { depth: 9 })} ${JSON.stringify(delegation)}`
      assert.notInclude(printed, Redacted.value(delegation.token))
    }))

  test("the service is the same whenever it is asked", (place) =>
    Effect.gen(function* () {
      const service = yield* place.trusts.service
      assert.isTrue(Schema.is(ServiceInfo)(service))
      assert.deepEqual(yield* place.trusts.service, service)
      assert.notStrictEqual(service.service_user.id, place.users.alice)
    }))
}
