import { join } from "node:path"
import * as NodeServices from "@effect/platform-node/NodeServices"
import { describe, expect, it } from "@effect/vitest"
import { Effect, Result } from "effect"
import { Command } from "effect/cli"
import { catalog } from "#cli/access/catalog.ts"
import { root } from "#cli/root.ts"
import { writePrivate } from "#files"
import { temporaryFolder } from "../world/programs/nats.ts"
import { type Fake, fake, fake_password } from "../world/share-protection/openstack/fake.ts"
import { printed } from "./printed.ts"

const url = "https://backup.example.org/v1"

/** The command's output line with these settings, or its failure. */
const registered = Effect.fnUntraced(function* (
  settings: Readonly<Record<string, string>>,
  address = url,
) {
  const set = Object.entries(settings).flatMap(([name, value]) => ["--set", `${name}=${value}`])
  const verb = Command.runWith(Command.withSubcommands(root, [catalog]), { version: "test" })
  const { value, out } = yield* printed(
    Effect.result(verb([...set, "catalog", "register", "--url", address])),
  ).pipe(Effect.provide(NodeServices.layer))
  if (Result.isSuccess(value)) return out.join("\n")
  expect(out).toEqual([])
  return "message" in value.failure ? value.failure.message : String(value.failure)
})

const settingsOf = Effect.fnUntraced(function* ({ url: auth_url }: Fake) {
  const file = join(yield* temporaryFolder, "password")
  yield* writePrivate(file, fake_password)
  return {
    "identity.kind": "keystone",
    "keystone_authtoken.auth_url": auth_url,
    "keystone_authtoken.username": "svcprotect",
    "keystone_authtoken.password_file": file,
    "keystone_authtoken.region": "here",
    "DEFAULT.endpoint_type": "internalURL",
    "database.connection": "sqlite:///models",
    "worker.capacity_slots": "1",
  }
})

describe("catalog register", () => {
  it.effect("makes the service and its endpoint of the interface and region of the settings", () =>
    Effect.gen(function* () {
      const cloud = yield* fake
      const { answers, requests } = cloud
      answers["GET /v3/services"] = () => ({ status: 200, body: { services: [] } })
      answers["POST /v3/services"] = () => ({ status: 201, body: { service: { id: "s1" } } })
      answers["GET /v3/endpoints"] = () => ({ status: 200, body: { endpoints: [] } })
      answers["POST /v3/endpoints"] = () => ({ status: 201 })
      const result = yield* registered(yield* settingsOf(cloud), `${url}/`)
      expect(result).toBe(`share-protection internal ${url} created`)
      const bodies = requests
        .filter(({ method, path }) => method === "POST" && path !== "/v3/auth/tokens")
        .map(({ body }) => JSON.parse(body))
      expect(bodies).toEqual([
        { service: { type: "share-protection", name: "almanac", enabled: true } },
        { endpoint: { service_id: "s1", interface: "internal", url, region_id: "here" } },
      ])
    }),
  )

  it.effect("reports missing permissions and a missing catalog, without the password", () =>
    Effect.gen(function* () {
      const cloud = yield* fake
      const settings = yield* settingsOf(cloud)
      cloud.answers["GET /v3/services"] = () => ({ status: 403 })
      expect(yield* registered(settings)).toContain("needs the role admin")
      cloud.answers["GET /v3/services"] = () => "drop"
      expect(yield* registered(settings)).toContain("Keystone cannot be reached")
      cloud.answers["POST /v3/auth/tokens"] = () => ({ status: 401, body: fake_password })
      const refused = yield* registered(settings)
      expect(refused).toContain("rejects the service user")
      expect(refused).not.toContain(fake_password)
    }),
  )

  it.effect("is nothing that the embedded identity has, nor takes what is no address", () =>
    Effect.gen(function* () {
      const cloud = yield* fake
      expect(yield* registered({})).toContain("identity.kind is embedded")
      const settings = yield* settingsOf(cloud)
      for (const wrong of ["ftp://a", "backup.example.org", "https://u:p@a/", `${url}?a=b`]) {
        expect(yield* registered(settings, wrong)).toContain("--url must be")
      }
      expect(cloud.requests).toEqual([])
    }),
  )
})
