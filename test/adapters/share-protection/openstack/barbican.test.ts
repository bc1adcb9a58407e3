import { describe, expect, it } from "@effect/vitest"
import { Effect, Redacted } from "effect"
import { denials } from "#actors/share-protection/ports/trusts.ts"
import { secret_denied, Vault } from "#actors/share-protection/ports/vault.ts"
import { vaultBarbican } from "#adapters/share-protection/vault-barbican.ts"
import { ProjectId } from "#schemas/share-protection/id.ts"
import { fake, type Said, sessionOf } from "../../../world/share-protection/openstack/fake.ts"

const id = "00000000-0000-4000-8000-000000000001"
const href = `https://elsewhere.example/v1/secrets/${id}`
const payload = `/barbican/v1/secrets/${id}/payload`
const secrets = "/barbican/v1/secrets"
const by = { project_id: ProjectId.make("p1"), token: Redacted.make("tenant-token") }

const opened = Effect.gen(function* () {
  const cloud = yield* fake
  const context = yield* sessionOf(cloud)
  const vault = yield* Effect.provide(Vault, vaultBarbican).pipe(Effect.provideContext(context))
  return { cloud, vault }
})

describe("Barbican", () => {
  it.effect("is contacted at the catalogue's address, with the tenant's token only", () =>
    Effect.gen(function* () {
      const { cloud, vault } = yield* opened
      cloud.answers[`GET ${payload}`] = () => ({ status: 200, body: Buffer.from("hidden") })
      expect(Redacted.value(yield* vault.read(by, href))).toBe("hidden")
      const request = cloud.requests.find(({ path }) => path === payload)
      expect([request?.headers["x-auth-token"], request?.headers.accept]).toEqual([
        "tenant-token",
        "application/octet-stream",
      ])
    }),
  )

  it.effect("distinguishes its own outage from a trust that is denied", () =>
    Effect.gen(function* () {
      const { cloud, vault } = yield* opened
      cloud.answers[`GET ${payload}`] = () => ({ status: 503, body: "<html>" })
      const response = (answer: Said) => {
        cloud.answers["GET /v3/auth/tokens"] = () => answer
        return Effect.map(Effect.flip(vault.read(by, href)), ({ code, detail }) => [code, detail])
      }
      const denied = "svc.trust_access_denied"
      const down = ["svc.backend_unavailable", "Barbican returned status 503."]
      expect(yield* response({ status: 200 })).toEqual(down)
      expect(yield* response({ status: 500 })).toEqual(down)
      expect(yield* response({ status: 404 })).toEqual([denied, denials.gone])
      expect(yield* response({ status: 403 })).toEqual([denied, denials.powerless])
      const subjects = cloud.requests.map(({ headers }) => headers["x-subject-token"])
      expect(subjects).toContain("tenant-token")
    }),
  )

  it.effect("is sent a secret once, also when its answer is lost", () =>
    Effect.gen(function* () {
      const { cloud, vault } = yield* opened
      cloud.answers[`POST ${secrets}`] = () => "drop"
      const failure = yield* Effect.flip(
        vault.store(by, { name: "n", payload: Redacted.make("hidden") }),
      )
      expect(failure.code).toBe("svc.backend_unavailable")
      expect(cloud.count("POST", secrets)).toBe(1)
    }),
  )

  it.effect("denies in words of ours, and fails without its own", () =>
    Effect.gen(function* () {
      const { cloud, vault } = yield* opened
      const outcome = (status: number) => {
        cloud.answers[`GET ${payload}`] = () => ({ status, body: { description: "inner words" } })
        return Effect.map(Effect.flip(vault.read(by, href)), ({ detail }) => detail)
      }
      expect(yield* outcome(401)).toBe(denials.gone)
      expect(yield* outcome(403)).toBe(secret_denied)
      expect(yield* outcome(404)).toBe(secret_denied)
      expect(yield* outcome(500)).toBe("Barbican returned status 500.")
      cloud.answers[`GET ${payload}`] = () => "drop"
      expect((yield* Effect.flip(vault.read(by, href))).code).toBe("svc.backend_unavailable")
    }),
  )

  it.effect("finds the newest secret of exactly this name that is active", () =>
    Effect.gen(function* () {
      const { cloud, vault } = yield* opened
      const secret = (n: number, name: string, status: string) => ({
        name,
        status,
        secret_ref: `https://b/v1/secrets/${n}`,
      })
      cloud.answers[`GET ${secrets}`] = () => ({
        status: 200,
        body: {
          secrets: [
            secret(1, "other", "ACTIVE"),
            secret(2, "key", "ERROR"),
            secret(3, "key", "ACTIVE"),
            secret(4, "key", "ACTIVE"),
          ],
        },
      })
      expect(yield* vault.find(by, "key")).toBe("https://b/v1/secrets/3")
      const { query } = cloud.requests.at(-1) ?? {}
      expect([query?.get("name"), query?.get("sort")]).toEqual(["key", "created:desc"])
      expect(yield* vault.find(by, "none")).toBeUndefined()
    }),
  )

  it.effect("keeps text as it is, white space around it as well", () =>
    Effect.gen(function* () {
      const { cloud, vault } = yield* opened
      const answer: Said = { status: 201, body: { secret_ref: href } }
      cloud.answers[`POST ${secrets}`] = () => answer
      const stored = Effect.fnUntraced(function* (text: string) {
        yield* vault.store(by, { name: "n", payload: Redacted.make(text) })
        return JSON.parse(cloud.requests.at(-1)?.body ?? "")
      })
      expect(yield* stored("pass word")).toMatchObject({ payload: "pass word" })
      const encoded = { payload: "cAo=", payload_content_encoding: "base64" }
      expect(yield* stored("p\n")).toMatchObject(encoded)
    }),
  )

  it.effect("that refuses what is to be kept says so without it", () =>
    Effect.gen(function* () {
      const { cloud, vault } = yield* opened
      cloud.answers[`POST ${secrets}`] = ({ body }) => ({
        status: 413,
        body: { description: body },
      })
      const payload = Redacted.make("hunter2")
      const error = yield* Effect.flip(vault.store(by, { name: "n", payload }))
      expect(JSON.stringify(error)).not.toContain("hunter2")
      expect(error.code).toBe("svc.backend_unavailable")
    }),
  )
})
