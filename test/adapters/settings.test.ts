import { hash } from "node:crypto"
import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join, resolve } from "node:path"
import { inspect } from "node:util"
import { afterAll, assert, describe, expect, it } from "@effect/vitest"
import { Effect, Redacted } from "effect"
import { addressRule } from "#adapters/outside/address.ts"
import { readSettings, type Sources } from "#adapters/settings.ts"
import { settings_by_path, variableOf } from "#schemas/settings.ts"

const folder = mkdtempSync(join(tmpdir(), "almanac-settings-"))
afterAll(() => rmSync(folder, { recursive: true }))

const hidden = "hunter2-hunter2-hunter2-hunter2-hunter2"

let files = 0
const file = (text: string) => {
  const path = join(folder, `${files++}.toml`)
  writeFileSync(path, text)
  return path
}

const read = ({ config, env = {}, set = [] }: Partial<Sources>) =>
  readSettings({ config, env, set })

/** The single-line startup error; it never contains the secret of these tests. */
const refusal = (sources: Partial<Sources>) =>
  Effect.map(Effect.flip(read(sources)), ({ message }) => {
    assert.notInclude(message, "\n")
    assert.notInclude(message, "hunter2")
    return message
  })

const refuses = (name: string, sources: Partial<Sources>, ...words: ReadonlyArray<string>) =>
  it.effect(name, () =>
    Effect.map(refusal(sources), (message) => {
      for (const word of words) assert.include(message, word)
    }),
  )

describe("the sources of a setting", () => {
  const config = file(`[api]\nbind_port = 1\nbind_host = "127.0.0.1"\nshape = "B"\n`)
  const env = { ALMANAC_API__BIND_PORT: "2", ALMANAC_API__BIND_HOST: "127.0.0.2" }
  const set = ["api.bind_port=3", "api.bind_port=4"]

  it.effect("are the defaults, where nothing is given", () =>
    Effect.map(read({}), ({ settings, sources }) => {
      expect(settings.api.bind_port).toBe(9797)
      expect(settings.data.dir).toBe(resolve("data"))
      expect(settings.blob.dir).toBe(resolve("data/blobs"))
      expect([...sources]).toEqual([])
    }),
  )
  it.effect("override each other in order: file, environment, flags, the last flag last", () =>
    Effect.map(read({ config, env, set }), ({ settings: { api }, sources }) => {
      expect([api.shape, api.bind_host, api.bind_port]).toEqual(["B", "127.0.0.2", 4])
      expect(api.request_timeout_seconds).toBe(60)
      expect([...sources.values()]).toEqual([
        "flag --set",
        "environment ALMANAC_API__BIND_HOST",
        `file ${config}`,
      ])
    }),
  )
  it.effect("take the file that ALMANAC_CONFIG names, unless a flag names one", () =>
    Effect.gen(function* () {
      const other = file(`[api]\nbind_port = 5\n`)
      const from_env = yield* read({ env: { ALMANAC_CONFIG: config } })
      const from_flag = yield* read({ config: other, env: { ALMANAC_CONFIG: config } })
      expect(from_env.settings.api.bind_port).toBe(1)
      expect(from_flag.settings.api.bind_port).toBe(5)
    }),
  )
  it.effect("take the data folder by its short variable, the long one first", () =>
    Effect.gen(function* () {
      const short = yield* read({ env: { ALMANAC_DATA_DIR: "/a" } })
      const both = yield* read({ env: { ALMANAC_DATA__DIR: "/b", ALMANAC_DATA_DIR: "/a" } })
      const turned = yield* read({ env: { ALMANAC_DATA_DIR: "/a", ALMANAC_DATA__DIR: "/b" } })
      expect(short.settings.data.dir).toBe("/a")
      expect(short.settings.blob.dir).toBe("/a/blobs")
      expect([both.settings.data.dir, turned.settings.data.dir]).toEqual(["/b", "/b"])
    }),
  )
  it.effect("take the dashboard's short variables, the long ones first, and no empty one", () =>
    Effect.gen(function* () {
      const short = { FRED_API_KEY: hidden, PRICES_SOURCE: "csv", CFTC_TLS_VERIFY: "1" }
      const dir = { ALMANAC_CAPITAL__PRICES_DIR: "p" }
      const { settings, sources } = yield* read({ env: { ...short, ...dir } })
      expect(Redacted.value(settings.capital.fred_key)).toBe(hidden)
      expect([settings.capital.prices_source, settings.capital.cftc_tls_verify]).toEqual([
        "csv",
        true,
      ])
      expect(sources.get("capital.fred_key")).toBe("environment FRED_API_KEY")
      const long = { ALMANAC_CAPITAL__CFTC_TLS_VERIFY: "false" }
      const both = yield* read({ env: { CFTC_TLS_VERIFY: "1", ...long } })
      expect(both.settings.capital.cftc_tls_verify).toBe(false)
      const off = yield* read({ env: { CFTC_TLS_VERIFY: "0", PRICES_SOURCE: "" } })
      expect(off.settings.capital).toMatchObject({
        prices_source: "yahoo",
        cftc_tls_verify: false,
      })
    }),
  )
  refuses(
    "name the short variable that is wrong",
    { env: { PRICES_SOURCE: "bloomberg" } },
    "capital.prices_source must be",
    "(environment PRICES_SOURCE)",
  )
  it.effect("take the web key by its own variable, and the mirror from the data folder", () =>
    Effect.gen(function* () {
      const env = { FMCSA_WEB_KEY: hidden, ALMANAC_DATA_DIR: "/a" }
      const { settings, sources } = yield* read({ env })
      expect(Redacted.value(settings.carrier.web_key)).toBe(hidden)
      expect(sources.get("carrier.web_key")).toBe("environment FMCSA_WEB_KEY")
      expect(settings.carrier.mirror).toBe("/a/carriers.sqlite")
      const given = yield* read({ set: ["carrier.mirror=m.sqlite"] })
      expect(given.settings.carrier.mirror).toBe(resolve("m.sqlite"))
    }),
  )
  it.effect("say where the dashboard's files are: in the data folder by default", () =>
    Effect.gen(function* () {
      const env = { ALMANAC_DATA_DIR: "/a" }
      const { capital } = (yield* read({ env })).settings
      expect(capital).toMatchObject({
        database: "/a/capital-pressure.sqlite",
        watchlist: "/a/watchlist.json",
        prices_dir: "",
      })
      const set = ["capital.database=d.sqlite", "capital.prices_dir=p", "capital.watchlist=w.json"]
      const { settings: given } = yield* read({ env, set })
      expect(given.capital).toMatchObject({
        database: resolve("d.sqlite"),
        watchlist: resolve("w.json"),
        prices_dir: resolve("p"),
      })
    }),
  )
  it.effect("name folders and files by their whole path, the data folder's own by default", () =>
    Effect.gen(function* () {
      const { settings: usual } = yield* read({ env: { ALMANAC_DATA_DIR: "/a" } })
      expect([usual.shares.root, usual.policy.file]).toEqual(["/a/shares", ""])
      expect(usual.database.connection).toBe("sqlite:////a/read-models")
      const set = ["shares.root=s", "policy.file=p.yaml", "database.connection=sqlite:///m"]
      const { settings: given } = yield* read({ set })
      expect([given.shares.root, given.policy.file]).toEqual([resolve("s"), resolve("p.yaml")])
      expect(given.database.connection).toBe(`sqlite:///${resolve("m")}`)
      const whole = yield* read({ set: ["database.connection=sqlite:////m/n"] })
      expect(whole.settings.database.connection).toBe("sqlite:////m/n")
    }),
  )
  it.effect("ask for a FIPS profile only where that is given: the identity is the embedded", () =>
    Effect.gen(function* () {
      const profile = (set: ReadonlyArray<string>) =>
        Effect.map(read({ set }), ({ settings }) => settings.engine)
      expect(yield* profile([])).toMatchObject({
        subprocess_timeout: 3600,
        require_fips_profile: false,
      })
      const { require_fips_profile: required } = yield* profile([
        "engine.require_fips_profile=true",
      ])
      expect(required).toBe(true)
    }),
  )
  it.effect("let buckets be near only where that is given: the identity is the embedded", () =>
    Effect.gen(function* () {
      const env = { ALMANAC_KEYSTONE_AUTHTOKEN__PASSWORD: "p" }
      const networks = (set: ReadonlyArray<string>) =>
        Effect.map(read({ env, set }), ({ settings }) => settings.targets.allowed_networks)
      const near = yield* networks([])
      expect(near).toContain("127.0.0.0/8")
      expect(addressRule(near)("169.254.169.254")).toBe(false)
      expect(yield* networks(["targets.allowed_networks=10.1.0.0/16"])).toEqual(["10.1.0.0/16"])
      const cloud = [
        "identity.kind=keystone",
        "keystone_authtoken.auth_url=https://keystone.example",
        "keystone_authtoken.username=u",
        "worker.capacity_slots=2",
        "database.connection=sqlite:////tmp/read-models",
      ]
      expect(yield* networks(cloud)).toEqual([])
    }),
  )
  it.effect("boot workers of the default image only where all is on this machine", () =>
    Effect.gen(function* () {
      const image = (set: ReadonlyArray<string>) =>
        Effect.map(read({ set }), ({ settings }) => settings.conductor.worker_boot_image)
      const cloud = ["identity.kind=keystone", "keystone_authtoken.auth_url=http://keystone:5000"]
      const needed = ["database.connection=sqlite:///m", "worker.capacity_slots=2"]
      const user = ["keystone_authtoken.username=almanac"]
      expect(yield* image([])).toBe("almanac-agent")
      expect(yield* image(["conductor.worker_boot_image="])).toBe("")
      expect(yield* image(["conductor.worker_boot_image=mine"])).toBe("mine")
      expect(yield* image(["compute.kind=none"])).toBe("")
      const env = { ALMANAC_KEYSTONE_AUTHTOKEN__PASSWORD: "hunter2" }
      const { settings } = yield* read({ set: [...cloud, ...needed, ...user], env })
      expect(settings.conductor.worker_boot_image).toBe("")
    }),
  )
  it.effect("know the section that OpenStack writes in capitals", () =>
    Effect.gen(function* () {
      const config = file(`[DEFAULT]\ncatalog_type = "a"\nendpoint_type = "internalURL"\n`)
      const env = { ALMANAC_DEFAULT__CATALOG_TYPE: "b" }
      const { settings } = yield* read({ config, env })
      expect(settings.DEFAULT).toEqual({ catalog_type: "b", endpoint_type: "internalURL" })
    }),
  )
  it.effect("read lists and booleans from the environment", () =>
    Effect.map(
      read({
        env: {
          ALMANAC_METRICS__PUBLIC: "true",
          ALMANAC_CLUSTER__JOIN: "http://a:1,http://b:2",
          ALMANAC_CLUSTER__SECRET: hidden,
          ALMANAC_NATS__URL: "nats://127.0.0.1:4222",
          ALMANAC_AUTH__JWT__ALGORITHMS: "RS256",
          ALMANAC_SERVICES: "blob-storage",
        },
      }),
      ({ settings }) => {
        expect(settings.metrics.public).toBe(true)
        expect(settings.cluster.join).toEqual(["http://a:1", "http://b:2"])
        expect(settings.auth.jwt.algorithms).toEqual(["RS256"])
        expect(settings.services).toEqual(["blob-storage"])
      },
    ),
  )
  it.effect("leave the variables of others alone", () =>
    Effect.map(
      read({
        env: {
          ALMANAC_REQUIRE_ALL: "1",
          ALMANAC_CACHE: "x",
          ALMANAC_URL: "x",
          API__BIND_PORT: "x",
        },
      }),
      ({ sources }) => expect([...sources]).toEqual([]),
    ),
  )
})

describe("a wrong type or range stops the start with a line", () => {
  const port = "api.bind_port must be an integer (0 to 65535), not"
  const in_file = file("[api]\nbind_port = 'x'\n")
  refuses("that names the file", { config: in_file }, `${port} "x" (file ${in_file})`)
  refuses(
    "that names the variable",
    { env: { ALMANAC_API__BIND_PORT: "70000" } },
    `${port} 70000 (environment ALMANAC_API__BIND_PORT)`,
  )
  refuses("that names the flag", { set: ["api.bind_port=-1"] }, `${port} -1 (flag --set)`)
  refuses(
    "also where a later source would override it",
    { config: in_file, set: ["api.bind_port=0"] },
    "file",
  )
  refuses("for an unknown service", { set: ["services=blob-store"] }, "services must be", "flag")
  refuses("for a setting in place of a section", { config: file("api = 1\n") }, "[api]")
  refuses("for a date", { config: file("[api]\nbind_host = 2020-01-01\n") }, "api.bind_host")
  refuses("for a date in place of a section", { config: file("api = 2020-01-01\n") }, "[api]")
  refuses("for a value of many lines", { set: ["cluster.name=a\nb"] }, '"a\\nb"')
  refuses(
    "for settings that do not agree, with the source",
    { env: { ALMANAC_API__NOAUTH: "true" } },
    "api.noauth is rejected on 0.0.0.0",
    "(environment ALMANAC_API__NOAUTH)",
  )
  it.effect("for every setting, from its variable", () =>
    Effect.forEach([...settings_by_path], ([path, setting]) => {
      if (["text", "url", "list", "secret"].includes(setting.form)) return Effect.void
      const env = { [variableOf(path)]: "neither" }
      return Effect.map(refusal({ env }), (message) => {
        assert.match(message, RegExp(`${path} must be (an? )?${setting.type}`))
        assert.include(message, `(environment ${variableOf(path)})`)
      })
    }),
  )
})

describe("an unknown name stops the start with a line that suggests the right one", () => {
  const meant = "did you mean api.bind_port?"
  refuses("in a file", { config: file("[api]\nbind_prot = 1\n") }, "api.bind_prot", meant, "file")
  refuses("for a section", { config: file("[apy]\nbind_port = 1\n") }, "did you mean api?")
  refuses("in an inner section", { config: file("[auth.jwt]\nisuer = 'x'\n") }, "auth.jwt.issuer?")
  refuses("in a flag", { set: ["api.bind_prot=1"] }, "api.bind_prot", meant, "flag --set")
  refuses("without a section", { set: ["bind_port=1"] }, meant)
  refuses(
    "in a variable",
    { env: { ALMANAC_API__BIND_PROT: "1" } },
    "ALMANAC_API__BIND_PROT is not a setting; did you mean ALMANAC_API__BIND_PORT?",
  )
  refuses(
    "in a variable with one underscore too few",
    { env: { ALMANAC_API_BIND_PORT: "1" } },
    "did you mean ALMANAC_API__BIND_PORT?",
  )
  refuses("in a variable like no setting", { env: { ALMANAC_X__Y: "1" } }, "ALMANAC_X__Y")
  refuses("in a table", { config: file("[[auth.tokens]]\nnmae = 'x'\n") }, "[0]", "name?")
  refuses("named like what every object has", { set: ["constructor=1"] }, "constructor")
  refuses("that would change every object", { config: file("__proto__ = 1\n") }, "unsafe")
  refuses("on many lines", { config: file('"a\\nb" = 1\n') }, '"a\\nb"')
})

describe("a file that does not read", () => {
  refuses("is named when it is missing", { config: "/no/such.toml" }, "/no/such.toml", "ENOENT")
  refuses("is refused when too large", { config: file("#".repeat(2 ** 20 + 1)) }, "TOO_LARGE")
  refuses(
    "is reported by line and column, without the line's text",
    { config: file(`[cluster]\nsecret = "${hidden}\n`) },
    "line 2, column",
  )
})

describe("a secret", () => {
  const secret_file = file(`${hidden}\n`)
  const value = (sources: Partial<Sources>) =>
    Effect.map(read(sources), ({ settings }) => Redacted.value(settings.cluster.secret))

  it.effect("comes from the file, from its variable, and from a file of its own", () =>
    Effect.gen(function* () {
      expect(yield* value({ config: file(`[cluster]\nsecret = "${hidden}"\n`) })).toBe(hidden)
      expect(yield* value({ env: { ALMANAC_CLUSTER__SECRET: hidden } })).toBe(hidden)
      expect(yield* value({ set: [`cluster.secret_file=${secret_file}`] })).toBe(hidden)
    }),
  )
  it.effect("of a token comes from a file of its own too", () =>
    Effect.gen(function* () {
      const config = file(`[[auth.tokens]]\nname = "a"\ntoken_file = "${secret_file}"\n`)
      const { settings } = yield* read({ config })
      expect(settings.auth.tokens.map(({ token }) => Redacted.value(token))).toEqual([hidden])
      expect(settings.auth.tokens[0]?.scopes).toEqual([])
    }),
  )
  it.effect("is never printed", () =>
    Effect.map(read({ env: { ALMANAC_CLUSTER__SECRET: hidden } }), ({ settings }) => {
      assert.notInclude(JSON.stringify(settings), hidden)
      assert.notInclude(inspect(settings, { depth: null, showHidden: true }), hidden)
    }),
  )
  refuses("is refused in a flag", { set: [`cluster.secret=${hidden}`] }, "cluster.secret_file")
  refuses(
    "is refused in a flag's table",
    { set: [`auth.tokens=[{"name":"a","token":"${hidden}"}]`] },
    "auth.tokens is a secret",
  )
  refuses("is not repeated from a flag without a name", { set: [hidden] }, "section.name=value")
  refuses("is not repeated from an unknown name", { set: [`cluster.secrte=${hidden}`] }, "secrte")
  refuses(
    "given twice is refused",
    {
      env: { ALMANAC_CLUSTER__SECRET: hidden, ALMANAC_CLUSTER__SECRET_FILE: secret_file },
    },
    "cluster.secret and cluster.secret_file cannot both be set",
  )
  refuses("file that is missing is named", { set: ["cluster.secret_file=/no"] }, "cannot read /no")
  refuses("file that is empty is refused", { set: [`cluster.secret_file=${file("\n")}`] }, "empty")
  refuses(
    "of another type is not shown",
    { config: file(`[cluster]\nsecret = ["${hidden}"]\n`) },
    "cluster.secret must be a secret string (file",
  )
  refuses(
    "in a URL is not shown",
    { env: { ALMANAC_NATS__URL: `nats://a:${hidden}@b` } },
    "without user or password",
  )
  refuses(
    "in tables that do not read is not shown",
    { env: { ALMANAC_AUTH__TOKENS: `[{"token": "${hidden}"` } },
    "auth.tokens must be a list of tables",
  )
  refuses(
    "next to a wrong column is not shown",
    { env: { ALMANAC_AUTH__TOKENS: `[{"name":"a","token":"${hidden}","scopes":["all"]}]` } },
    "auth.tokens[0].scopes must be",
    "(environment ALMANAC_AUTH__TOKENS)",
  )
  refuses(
    "that cannot be a bearer token is not shown",
    { env: { ALMANAC_AUTH__TOKENS: `[{"name":"a","token":"${hidden} x"}]` } },
    "auth.tokens[0].token",
  )
  const both = [
    { name: "a", token: hidden },
    { name: "b", sha256: hash("sha256", hidden) },
  ]
  for (const tokens of [both, both.toReversed()]) {
    refuses(
      "that equals another entry's hash is rejected, in either order",
      { env: { ALMANAC_AUTH__TOKENS: JSON.stringify(tokens) } },
      `auth.tokens[1] is the same token as that of ${tokens[0]?.name}`,
    )
  }
})
