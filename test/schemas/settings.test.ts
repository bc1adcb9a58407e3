import { existsSync } from "node:fs"
import { assert, describe, expect, it } from "@effect/vitest"
import { Redacted, Result } from "effect"
import { decodeSetting, fromText, nearest, type Setting } from "#schemas/setting.ts"
import { type Role, roles, type Settings, settings_by_path, variableOf } from "#schemas/settings.ts"
import { settingsPage } from "#schemas/settings-page.ts"
import { reload } from "#schemas/settings-reload.ts"
import { firstViolation, isLoopback } from "#schemas/settings-rules.ts"
import { given } from "../world/settings-given.ts"
import { documented } from "./settings-documented.ts"

/** An out-of-range value of the right type, for each range that is not numeric. */
const outside: Record<string, unknown> = {
  services: ["blob-store"],
  roles: ["gatekeeper"],
  "webhooks.allowed_networks": ["localhost"],
  "nats.subscribers": ["a-b"],
  "targets.allowed_networks": ["localhost"],
  "api.unlimited_addresses": ["localhost"],
  "api.bind_host": "two words",
  "api.shape": "C",
  "tls.client_certificates": [{ subject: "x" }],
  "auth.tokens": [{ name: "" }],
  "auth.jwt.jwks_url": "ftp://example.org",
  "auth.jwt.algorithms": ["none"],
  "json.int64": "float",
  "nats.url": "nats://user:hunter2@example.org",
  "cluster.name": "a.b",
  "cluster.node_id": "a b",
  "cluster.advertise_address": "example.org",
  "cluster.join": ["example.org"],
  "DEFAULT.catalog_type": "share protection",
  "DEFAULT.endpoint_type": "public",
  "identity.kind": "cloud",
  "keystone_authtoken.www_authenticate_uri": "http://user:hunter2@example.org",
  "keystone_authtoken.auth_url": "ldap://keystone",
  "manila.mount": "smb",
  "manila.access_to": "everywhere",
  "manila.admin_role": "",
  "conductor.worker_boot_image": "two\nlines",
  "enrollment.dispatch": "cast",
  "compute.kind": "cloud",
  "compute.flavor": "two\nlines",
  "compute.networks": ["not an id"],
  "compute.security_groups": ["two\nlines"],
  "compute.key_name": "two\nlines",
  "database.connection": "postgresql://almanac:hunter2@example.org/almanac",
  "capital.cors_origins": ["example.org"],
  "capital.prices_source": "bloomberg",
  "capital.contact": "two (words)",
  "carrier.registry": "safer",
  "carrier.registry_url": "https://example.org/?webKey=hunter2",
  "plant.resize": "lanczos",
  "plant.scale": "0..256",
  "telemetry.otlp_url": "example.org",
  "telemetry.sample_ratio": 1.01,
  "log.level": "loud",
}

const wrong_type = (setting: Setting) =>
  ({
    integer: "five",
    ratio: "half",
    flag: "yes",
    list: "a",
    tables: "a",
    text: 5,
    url: 5,
    secret: 5,
  })[setting.form]

const problem = (path: string, setting: Setting, raw: unknown) => {
  const decoded = decodeSetting(path, setting, raw)
  return Result.isFailure(decoded) ? decoded.failure.problem : "accepted"
}

describe("every setting", () => {
  it("is documented above, and nothing else is", () =>
    expect([...settings_by_path.keys()]).toEqual(Object.keys(documented)))

  for (const [path, setting] of settings_by_path) {
    it(`${path} has its documented default, which it accepts`, () => {
      expect(setting.initial).toEqual(documented[path])
      assert.isTrue(Result.isSuccess(decodeSetting(path, setting, setting.initial)))
    })

    it(`${path} refuses another type`, () =>
      expect(problem(path, setting, wrong_type(setting))).toMatch(
        RegExp(`^must be (an? )?${setting.type}`),
      ))

    if (setting.form === "integer") {
      const [minimum = 0, maximum = 0] = setting.range.match(/\d+/g)?.map(Number) ?? []
      it(`${path} accepts its bounds and nothing beyond`, () => {
        expect(problem(path, setting, minimum)).toBe("accepted")
        expect(problem(path, setting, maximum)).toBe("accepted")
        expect(problem(path, setting, minimum - 1)).toMatch("must be an integer")
        expect(problem(path, setting, maximum + 1)).toMatch("must be an integer")
        expect(problem(path, setting, minimum + 0.5)).toMatch("must be an integer")
      })
    } else if (setting.range !== "") {
      it(`${path} refuses what is out of its range`, () => {
        assert.property(outside, path)
        expect(problem(path, setting, outside[path])).toMatch("must be")
      })
    }
  }
})

describe("database.connection", () => {
  const setting = settings_by_path.get("database.connection")
  it.each([
    ["postgresql://almanac@db.example.org:5433/almanac?sslmode=verify-full", true],
    ["postgres://%2Frun%2Fpostgresql/almanac", true],
    ["postgresql:///almanac?host=/run/postgresql", true],
    ["postgresql://almanac@db.example.org/almanac?password=hunter2", false],
    ["postgresql://almanac:hunter2@db.example.org/almanac", false],
    ["postgresql://db.example.org", false],
    ["mysql://db.example.org/almanac", false],
  ])("%s", (connection, is_taken) => {
    if (setting === undefined) return assert.fail("it is no setting")
    const decoded = decodeSetting("database.connection", setting, connection)
    assert.equal(Result.isSuccess(decoded), is_taken)
  })
})

describe("text of a variable or flag", () => {
  const read = (path: string, text: string) => {
    const setting = settings_by_path.get(path)
    return setting === undefined ? undefined : fromText(setting, text)
  }

  const ratio_path = "telemetry.sample_ratio"

  it("reads as an integer", () => expect(read("api.bind_port", " 80 ")).toBe(80))
  it("stays text where it is no integer", () => expect(read("api.bind_port", "0x50")).toBe("0x50"))
  it("reads as a share of all", () =>
    expect(["0.25", "1", " 0 ", ".5", "1e-1"].map((text) => read(ratio_path, text))).toEqual([
      0.25,
      1,
      0,
      ".5",
      "1e-1",
    ]))
  it("reads as true and false", () =>
    expect(["true", "false", "yes"].map((text) => read("api.noauth", text))).toEqual([
      true,
      false,
      "yes",
    ]))
  it("reads as a list with commas", () => expect(read("cluster.join", "a, b")).toEqual(["a", "b"]))
  it("reads as an empty list", () => expect(read("cluster.join", "")).toEqual([]))
  it("reads as a JSON list", () => expect(read("cluster.join", '["a,b"]')).toEqual(["a,b"]))
  it("reads as tables", () =>
    expect(read("auth.tokens", '[{"name":"a"}]')).toEqual([{ name: "a" }]))
})

describe("a name that does not exist", () => {
  const names = [...settings_by_path.keys()]
  const cases = [
    ["api.bind_prot", "api.bind_port"],
    ["api.bindport", "api.bind_port"],
    ["api.port", "api.bind_port"],
    ["blob.bind_port", "api.bind_port"],
    ["loglevel", "log.level"],
    ["cluster.vnodes", undefined],
    ["a".repeat(10_000), undefined],
  ] as const
  for (const [name, meant] of cases) {
    it(`${name.slice(0, 20)} suggests ${meant}`, () => expect(nearest(name, names)).toBe(meant))
  }
})

describe("settings together", () => {
  const wrong = (change: Change) => firstViolation(given(change))?.path
  const a_secret = Redacted.make("s".repeat(32))
  const token = { name: "a", token: Redacted.make("t"), token_file: "", sha256: "", ...no_grant }
  const certificate = { subject: "CN=a", ...no_grant }

  it("agree by default", () => expect(firstViolation(given({}))).toBeUndefined())

  it("refuse no authentication where others reach it", () => {
    expect(wrong({ api: { noauth: true } })).toBe("api.noauth")
    expect(wrong({ api: { noauth: true, bind_host: "192.168.0.1" } })).toBe("api.noauth")
    expect(wrong({ api: { noauth: true, bind_host: "127.0.0.1.example.org" } })).toBe("api.noauth")
    expect(wrong({ api: { noauth: true, bind_host: "::" } })).toBe("api.noauth")
  })
  it("need a service", () =>
    expect(firstViolation({ ...given({}), services: [] })?.path).toBe("services"))
  describe("of a process with less than all roles", () => {
    const elsewhere = given({ nats: { url: "nats://a" } })
    const connection = "postgresql://a/b"
    const postgres = { ...elsewhere, database: { ...elsewhere.database, connection } }
    const shares: Settings["services"] = ["share-protection"]
    const blobs: Settings["services"] = ["blob-storage"]
    const cases: ReadonlyArray<readonly [string, Settings, ReadonlyArray<Role>, string?]> = [
      ["none at all", elsewhere, [], "at least one"],
      ["actors alone on a bus of its own", given({}), ["actors"], "conductor, or nats.url"],
      ["a gateway on a bus of its own", given({}), ["gateway"], "actors and conductor"],
      ["a bus of its own without workers", given({}), ["gateway", "actors", "conductor"]],
      ...roles
        .filter((role) => role !== "projections")
        .map((role) => [`${role} alone`, elsewhere, [role]] as const),
      ["read models without readers", elsewhere, ["projections"], "PostgreSQL"],
      ["read models for others", postgres, ["projections"]],
      ["blobs without their service", { ...elsewhere, services: shares }, ["blob"], "blob-storage"],
      ["a worker without work", { ...elsewhere, services: blobs }, ["agent"], "share-protection"],
      ["one of them is enough", { ...elsewhere, services: blobs }, ["agent", "actors"]],
    ]
    for (const [name, settings, roles, problem] of cases) {
      it(name, () => {
        const found = firstViolation({ ...settings, roles })
        expect(found?.path).toBe(problem && "roles")
        if (problem !== undefined) expect(found?.problem).toContain(problem)
      })
    }
  })
  it("allow no authentication on loopback, and where it is said twice", () => {
    for (const bind_host of ["127.0.0.1", "127.8.8.8", "::1", "localhost"]) {
      assert.isTrue(isLoopback(bind_host))
      expect(wrong({ api: { noauth: true, bind_host } })).toBeUndefined()
    }
    expect(wrong({ api: { noauth: true, noauth_unsafe: true } })).toBeUndefined()
  })
  const refused: ReadonlyArray<readonly [string, Change]> = [
    ["tls.cert", { tls: { cert: "c" } }],
    ["tls.key", { tls: { key: "k" } }],
    ["tls.client_ca", { tls: { client_ca: "c" } }],
    ["tls.client_certificates", { tls: { client_certificates: [certificate] } }],
    [
      "tls.client_certificates[1].subject",
      {
        tls: {
          cert: "c",
          key: "k",
          client_ca: "a",
          client_certificates: [certificate, certificate],
        },
      },
    ],
    ["auth.tokens[0]", { auth: { tokens: [{ ...token, token: Redacted.make("") }] } }],
    ["auth.tokens[0]", { auth: { tokens: [{ ...token, sha256: "0".repeat(64) }] } }],
    ["auth.tokens[0].token", { auth: { tokens: [{ ...token, token: Redacted.make("a b") }] } }],
    ["auth.tokens[1].name", { auth: { tokens: [token, token] } }],
    ["auth.tokens[1]", { auth: { tokens: [token, { ...token, name: "other" }] } }],
    ["nats.password", { nats: { password: a_secret } }],
    ["nats.user", { nats: { user: "u" } }],
    ["nats.creds_file", { nats: { url: "nats://a", user: "u", creds_file: "f" } }],
    ["nats.tls_cert", { nats: { url: "nats://a", tls_key: "k" } }],
    ["nats.replicas", { nats: { replicas: 3 } }],
    ["nats.subscribers", { nats: { subscribers: ["a"], url: "nats://127.0.0.1:4222" } }],
    ["nats.subscribers", { nats: { subscribers: ["a", "b", "a"] } }],
    ["cluster.secret", { cluster: { secret: Redacted.make("short") } }],
    ["cluster.join", { cluster: { join: ["http://a"] } }],
    ["cluster.heartbeat_deadline_seconds", { cluster: { heartbeat_deadline_seconds: 5 } }],
    ["cluster.remove_after_seconds", { cluster: { remove_after_seconds: 15 } }],
    ["blob.json_body_bytes_max", { blob: { stream_bytes_max: 2048 } }],
    ["api.default_limit", { api: { max_limit: 99 } }],
    ["conductor.min_workers", { conductor: { min_workers: 11 } }],
    ["api.rate_limit_burst", { api: { rate_limit_burst: 5 } }],
    ["capital.token", { capital: { token: Redacted.make("a b") } }],
    ["capital.prices_dir", { capital: { prices_source: "csv" } }],
    ["capital.stooq_key", { capital: { prices_source: "stooq" } }],
    ["webhooks.key", { webhooks: { key: Redacted.make("short") } }],
    ["webhooks.allowed_networks[1]", { webhooks: { allowed_networks: ["10.0.0.0/8", "10/8"] } }],
    ["webhooks.allowed_networks[0]", { webhooks: { allowed_networks: ["10.0.0.0/33"] } }],
    ["webhooks.allowed_networks[0]", { webhooks: { allowed_networks: ["fd00::/129"] } }],
    ["api.unlimited_addresses[0]", { api: { unlimited_addresses: ["10/8"] } }],
    ["targets.allowed_networks[0]", { targets: { allowed_networks: ["10/8"] } }],
    ["carrier.web_key", { carrier: { registry: "fmcsa" } }],
    ["carrier.web_key", { carrier: { web_key: Redacted.make("a key\n") } }],
    ["carrier.registry_url", { carrier: { registry_url: "https://user:hunter2@example.org" } }],
    ["carrier.registry_url", { carrier: { registry_url: "http://[" } }],
  ]
  for (const [path, change] of refused) {
    it(`refuse ${path} of ${Object.keys(Object.values(change)[0] ?? {})}`, () =>
      expect(wrong(change)).toBe(path))
  }
  it("require a joining node to name the log of its cluster", () => {
    const joining = { join: ["http://a"], secret: a_secret }
    const message = "needs nats.url: the NATS server with the log that all members share"
    const alone = firstViolation(given({ cluster: joining }))
    expect([alone?.path, alone?.problem]).toEqual(["cluster.join", message])
    expect(wrong({ cluster: joining, nats: { url: "nats://a" } })).toBeUndefined()
  })
  it("need what Keystone has to be asked with", () => {
    const kind = { identity: { kind: "keystone" } } as const
    const whole = { auth_url: "http://k", username: "u", password: a_secret }
    const keystone = (change: object) =>
      wrong({ ...kind, keystone_authtoken: { ...whole, ...change } })
    expect(keystone({})).toBeUndefined()
    expect(wrong({ keystone_authtoken: {} })).toBeUndefined()
    for (const name of ["auth_url", "username", "project_name"]) {
      expect(keystone({ [name]: "" })).toBe(`keystone_authtoken.${name}`)
    }
    expect(keystone({ password: Redacted.make("") })).toBe("keystone_authtoken.password")
    const open = { noauth: true, noauth_unsafe: true }
    expect(wrong({ ...kind, keystone_authtoken: whole, api: open })).toBe("api.noauth")
  })
  it("refuse a weak shared secret, two sources of keys and keys in the open", () => {
    const jwt = (jwt: Partial<Settings["auth"]["jwt"]>) =>
      firstViolation(given({ auth: { jwt: { ...given({}).auth.jwt, ...jwt } } }))?.path
    expect(jwt({ hs256_secret: Redacted.make("s".repeat(31)) })).toBe("auth.jwt.hs256_secret")
    expect(jwt({ jwks_url: "https://a", jwks_file: "f" })).toBe("auth.jwt.jwks_file")
    expect(jwt({ jwks_url: "http://example.org/jwks" })).toBe("auth.jwt.jwks_url")
    expect(jwt({ jwks_url: "http://127.0.0.1/jwks" })).toBeUndefined()
  })
})

type Change = Parameters<typeof given>[0]

const no_grant = { scopes: [], roles: [], project_id: "", domain_id: "", user_id: "" }

describe("settings read again", () => {
  it("apply what is reloadable, and name what is not", () => {
    const running = given({ log: { level: "info" } })
    const read = given({ log: { level: "trace" }, api: { bind_port: 1, shape: "B" } })
    const { settings, applied, needs_restart } = reload(running, read)
    expect(applied).toEqual(["log.level"])
    expect(needs_restart).toEqual(["api.bind_port", "api.shape"])
    expect(settings).toEqual(given({ log: { level: "trace" } }))
  })
  it("apply the interval that document 2 calls reloadable", () => {
    const conductor = { reconciliation_interval: 10 }
    expect(reload(given({}), given({ conductor })).applied).toEqual([
      "conductor.reconciliation_interval",
    ])
  })
  it("see a changed secret and do not show it", () => {
    const read = given({ cluster: { secret: Redacted.make("s".repeat(40)) } })
    expect(reload(given({}), read).needs_restart).toEqual(["cluster.secret"])
    assert.notInclude(JSON.stringify(reload(given({}), read)), "sss")
  })
  it("change nothing when they are the same", () =>
    expect(reload(given({}), given({}))).toEqual({
      settings: given({}),
      applied: [],
      needs_restart: [],
    }))
})

describe("docs/configuration.md", () => {
  it("is what the settings say", async () => {
    assert.isTrue(existsSync("docs/configuration.md"))
    await expect(settingsPage()).toMatchFileSnapshot("../../docs/configuration.md")
  })
  it("has a row for every setting, with its variable", () => {
    for (const path of settings_by_path.keys()) {
      assert.include(settingsPage(), `<br>\`${variableOf(path)}\``)
    }
  })
})
