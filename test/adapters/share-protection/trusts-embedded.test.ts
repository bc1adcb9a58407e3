import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, assert, describe, expect, it } from "@effect/vitest"
import { Effect, Redacted } from "effect"
import { TestClock } from "effect/testing"
import { v7 } from "uuid"
import { type Delegation, denials, Trusts } from "#actors/share-protection/ports/trusts.ts"
import {
  openTrustStore,
  type TrustStore,
  trusts_max,
  withAssignment,
} from "#adapters/share-protection/trust-store.ts"
import {
  inspector,
  trustIssuer,
  trustsEmbedded,
} from "#adapters/share-protection/trusts-embedded.ts"
import { ProjectId } from "#schemas/share-protection/id.ts"
import {
  type TrustOptions,
  type TrustPlace,
  trustsContract,
} from "../../contract/share-protection/trusts.ts"

const folder = mkdtempSync(join(tmpdir(), "almanac-trusts-"))
afterAll(() => rmSync(folder, { recursive: true }))
const freshFolder = () => mkdtempSync(join(folder, "data-"))

const portOf = (store: TrustStore) => Effect.provide(Trusts, trustsEmbedded(store))

const record = (trust_id: string, project_id: string) => ({
  trust_id,
  project_id,
  trustor_user_id: null,
  trustee_user_id: "nobody",
  roles: ["member"],
  impersonation: true,
  remaining_uses: null,
  created_at: 0,
  expires_at: null,
  revoked_at: null,
})

const place = Effect.gen(function* () {
  const store = yield* openTrustStore(freshFolder())
  const projects = { one: ProjectId.make(v7()), other: ProjectId.make(v7()) }
  const users = { alice: v7(), bob: v7() }
  const issuer = trustIssuer(store)
  const create = Effect.fnUntraced(function* (options: TrustOptions = {}) {
    const { trustor = "alice", project = "one", expires_in_s } = options
    const trust_id = yield* issuer.issue({
      project_id: projects[project],
      user_id: users[trustor],
      roles: ["member"],
      ...(expires_in_s !== undefined && { ttl_seconds: expires_in_s }),
    })
    const { trustee = "us", impersonation = true, remaining_uses = null } = options
    const odd = { impersonation, remaining_uses }
    yield* store.update(({ trusts, ...kept }) => ({
      ...kept,
      trusts: trusts.map((trust) => {
        if (trust.trust_id !== trust_id) return trust
        return { ...trust, ...odd, ...(trustee === "somebody" && { trustee_user_id: v7() }) }
      }),
    }))
    return trust_id
  })
  const member = { user_id: users.alice, project_id: projects.one, roles: ["member"] }
  const inspect = inspector(store)
  const answer: TrustPlace = {
    trusts: yield* portOf(store),
    projects,
    users,
    create,
    createExpired: Effect.tap(create({ expires_in_s: 10 }), () => TestClock.adjust("10 seconds")),
    revoke: issuer.revoke,
    takeRole: store.update((kept) => ({
      ...kept,
      assignments: kept.assignments.filter(
        ({ user_id, project_id }) => user_id !== users.alice || project_id !== projects.one,
      ),
    })),
    giveRole: store.update((kept) => ({
      ...kept,
      assignments: withAssignment(kept.assignments, member),
    })),
    projectOf: (delegation) => Effect.catch(inspect(delegation), () => Effect.undefined),
  }
  return answer
})

describe("embedded trusts", () => {
  trustsContract((name, body) => it.effect(name, () => Effect.flatMap(place, body)))
})

describe("the trust store", () => {
  const request = { project_id: "p", roles: ["member"] }

  it.effect("keeps who the service is, its trusts and their tokens over a restart", () =>
    Effect.gen(function* () {
      const data_dir = freshFolder()
      const first = yield* openTrustStore(data_dir)
      const trust_id = yield* trustIssuer(first).issue({ ...request, user_id: "u" })
      const delegation = yield* (yield* portOf(first)).redeem(trust_id)
      const second = yield* openTrustStore(data_dir)
      expect(second.service).toEqual(first.service)
      expect(second.service.service_user.name).toBe("almanac")
      expect(second.service.worker_project.name).toBe("almanac-workers")
      expect(yield* inspector(second)(delegation)).toBe("p")
      expect([...second.rolesOf("u", "p")]).toEqual(["member"])
      assert.notDeepEqual((yield* openTrustStore(freshFolder())).service, first.service)
    }),
  )

  it.effect("is one service in all folders that share a secret, but in those from before", () =>
    Effect.gen(function* () {
      const [one, other] = ["a shared secret", "another one"].map((text) => Redacted.make(text))
      const open = (secret = one, folder = freshFolder()) =>
        Effect.map(openTrustStore(folder, secret), ({ service }) => service)
      const { service_user, worker_project } = yield* open()
      expect(yield* open()).toEqual({ service_user, worker_project })
      const ids = new Set([
        service_user.id,
        worker_project.id,
        (yield* open(other)).service_user.id,
      ])
      expect(ids.size).toBe(3)
      const folder = freshFolder()
      const { service } = yield* openTrustStore(folder)
      expect(yield* open(one, folder)).toEqual(service)
    }),
  )

  it.effect("is a private file without a token in it", () =>
    Effect.gen(function* () {
      const data_dir = freshFolder()
      const store = yield* openTrustStore(data_dir)
      const delegation = yield* (yield* portOf(store)).redeem(
        yield* trustIssuer(store).issue(request),
      )
      const path = join(data_dir, "identity", "trusts.json")
      expect(statSync(path).mode & 0o777).toBe(0o600)
      const [claims = "", tag = ""] = Redacted.value(delegation.token).split(".")
      for (const part of [claims, tag]) assert.notInclude(readFileSync(path, "utf8"), part)
    }),
  )

  it.effect("is not read from a damaged file", () =>
    Effect.gen(function* () {
      const data_dir = freshFolder()
      const path = join(data_dir, "identity", "trusts.json")
      yield* openTrustStore(data_dir)
      const whole = JSON.parse(readFileSync(path, "utf8"))
      for (const text of ["{", "{}", JSON.stringify({ ...whole, key: "0".repeat(63) })]) {
        writeFileSync(path, text)
        const { message } = yield* Effect.flip(openTrustStore(data_dir))
        assert.include(message, "trusts.json is not a trust file")
      }
    }),
  )

  it.effect("takes so many trusts, and changes made at once all count", () =>
    Effect.gen(function* () {
      const store = yield* openTrustStore(freshFolder())
      const issue = trustIssuer(store).issue({ ...request, user_id: "u" })
      const ids = yield* Effect.all(
        Array.from({ length: 10 }, () => issue),
        {
          concurrency: "unbounded",
        },
      )
      for (const id of ids) assert.isDefined(store.find(id))
      const records = Array.from({ length: trusts_max }, (_, n) => record(`t${n}`, "p"))
      yield* store.update((kept) => ({ ...kept, trusts: records }))
      const { message } = yield* Effect.flip(issue)
      expect(message).toBe("the limit of 10000 trusts is reached")
      assert.isDefined(store.find("t9999"))
    }),
  )

  it("adds roles to a user's own in the project, and to no other user's", () => {
    const kept = [
      { user_id: "a", project_id: "p", roles: ["x"] },
      { user_id: "a", project_id: "q", roles: ["x"] },
    ]
    const more = withAssignment(kept, { user_id: "a", project_id: "p", roles: ["y", "x"] })
    expect(more).toEqual([kept[1], { user_id: "a", project_id: "p", roles: ["x", "y"] }])
  })
})

describe("a trust that the operator makes", () => {
  it.effect("for a project as a whole serves each of its users", () =>
    Effect.gen(function* () {
      const store = yield* openTrustStore(freshFolder())
      const trusts = yield* portOf(store)
      const trust_id = yield* trustIssuer(store).issue({ project_id: "p", roles: ["member"] })
      const project_id = ProjectId.make("p")
      for (const user_id of ["alice", "bob", null]) {
        yield* trusts.verify(trust_id, { project_id, user_id })
      }
      expect((yield* trusts.redeem(trust_id)).project_id).toBe("p")
    }),
  )

  it.effect("is revoked once", () =>
    Effect.gen(function* () {
      const { issue, revoke } = trustIssuer(yield* openTrustStore(freshFolder()))
      const trust_id = yield* issue({ project_id: "p", roles: ["member"] })
      expect(yield* revoke(trust_id)).toBe(true)
      expect([yield* revoke(trust_id), yield* revoke("none")]).toEqual([false, false])
    }),
  )
})

describe("a token of a trust", () => {
  const one = Effect.gen(function* () {
    const store = yield* openTrustStore(freshFolder())
    const trust_id = yield* trustIssuer(store).issue({ project_id: "p", roles: ["member"] })
    const delegation = yield* (yield* portOf(store)).redeem(trust_id)
    const refused = (token: string) =>
      Effect.map(
        Effect.flip(inspector(store)({ ...delegation, token: Redacted.make(token) })),
        ({ detail }) => detail,
      )
    return { store, delegation, refused, token: Redacted.value(delegation.token) }
  })

  it.effect("lives for an hour, and not a millisecond longer", () =>
    Effect.gen(function* () {
      const { store, delegation, refused, token } = yield* one
      yield* TestClock.adjust(3_600_000 - 1)
      expect(yield* inspector(store)(delegation)).toBe("p")
      yield* TestClock.adjust(1)
      expect(yield* refused(token)).toBe(denials.gone)
    }),
  )

  it.effect("cannot be forged", () =>
    Effect.gen(function* () {
      const { token, refused } = yield* one
      const other = yield* one
      const [claims = "", tag = ""] = token.split(".")
      const payload = JSON.parse(Buffer.from(claims, "base64url").toString())
      const longer = Buffer.from(JSON.stringify({ ...payload, expires_at: 9e15 })).toString(
        "base64url",
      )
      const changed = tag.replace(/^./, (first) => (first === "A" ? "B" : "A"))
      const forged = ["", ".", claims, `${claims}.`, `${claims}.${changed}`, `${longer}.${tag}`]
      for (const text of [...forged, other.token, `${token.slice(0, -5)}`]) {
        expect(yield* refused(text)).toBe(denials.gone)
      }
    }),
  )

  it.effect("carries its project, and ignores other claims of it", () =>
    Effect.gen(function* () {
      const { store, delegation } = yield* one
      const lie: Delegation = { ...delegation, project_id: ProjectId.make("q") }
      expect(yield* inspector(store)(lie)).toBe("p")
    }),
  )
})
