/** Selection of server and credentials: environment, profiles, Keystone, the development server. */
import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { afterEach, beforeEach } from "vitest"
import { type AccessOptions, accessOf } from "#cli/client/access.ts"
import type { Need } from "#cli/client/operation.ts"
import { endingOf, json, scripted } from "./scripted.ts"

let folder: string
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "almanac-access-"))
})
afterEach(() => rmSync(folder, { recursive: true, force: true }))

const { signal } = new AbortController()

const asking = (env: NodeJS.ProcessEnv = {}, more: Partial<AccessOptions> = {}): AccessOptions => ({
  env: { HOME: folder, ...env },
  data_dir: join(folder, "data"),
  signal,
  ...more,
})
const profiles = (text: string, mode = 0o600) => {
  mkdirSync(join(folder, ".config", "almanac"), { recursive: true })
  const path = join(folder, ".config", "almanac", "profiles.toml")
  writeFileSync(path, text)
  chmodSync(path, mode)
}
const development = () => {
  mkdirSync(join(folder, "data", "run"), { recursive: true })
  const token = (name: string) => [name, { token: `${name}-token` }]
  const names = ["tenant", "tenant_b", "admin", "blob", "domain_owner"].map(token)
  writeFileSync(
    join(folder, "data", "dev-credentials.json"),
    JSON.stringify(Object.fromEntries(names)),
  )
  const instance = JSON.stringify({ url: "http://127.0.0.1:1" })
  writeFileSync(join(folder, "data", "run", "instance.json"), instance)
}
const headersOf = async (
  given: AccessOptions,
  need: Need = "tenant",
): Promise<Readonly<Record<string, string>>> => {
  const access = await accessOf(given)
  return { url: access.url, ...(await access.headers(need, signal)) }
}

describe("the development server of the data folder", () => {
  it("receives the token of the principal that an operation needs", async () => {
    development()
    for (const need of ["tenant", "admin", "blob", "domain_owner"] as const) {
      const { url, authorization } = await headersOf(asking(), need)
      assert.equal(url, "http://127.0.0.1:1")
      assert.equal(authorization, `Bearer ${need}-token`)
    }
    assert.isUndefined((await headersOf(asking(), "none")).authorization)
  })

  it("accepts --as for an existing principal", async () => {
    development()
    const other = await headersOf(asking({}, { as: "tenant_b" }))
    assert.equal(other.authorization, "Bearer tenant_b-token")
    const { ending, message } = await endingOf(accessOf(asking({}, { as: "nobody" })))
    assert.equal(ending, "usage")
    assert.match(message, /it has: tenant, tenant_b, admin/)
  })

  it("is missing if nothing runs, which the error says", async () => {
    const { ending, message } = await endingOf(accessOf(asking()))
    assert.equal(ending, "usage")
    assert.match(message, /none runs on .*npm start/s)
  })
})

describe("the environment", () => {
  it("overrides the development server, and its token is never sent elsewhere", async () => {
    development()
    const env = { ALMANAC_URL: "http://other:1/v1/" }
    assert.deepEqual(await headersOf(asking(env)), { url: "http://other:1" })
    const signed = await headersOf(asking({ ...env, ALMANAC_TOKEN: "t" }))
    assert.deepEqual(signed, { url: "http://other:1", authorization: "Bearer t" })
    const os = { OS_TOKEN: "o", OS_ENDPOINT: "http://os:1/v1" }
    assert.deepEqual(await headersOf(asking(os)), {
      url: "http://os:1",
      authorization: "Bearer o",
    })
  })

  it("rejects --as", async () => {
    development()
    const env = { ALMANAC_URL: "http://other:1", ALMANAC_TOKEN: "t" }
    const { ending, message } = await endingOf(accessOf(asking(env, { as: "tenant_b" })))
    assert.equal(ending, "usage")
    assert.match(message, /--as/)
  })

  it("accepts a URL in any case", async () => {
    const env = { ALMANAC_URL: "HTTPS://A:1/v1/" }
    assert.equal((await headersOf(asking(env))).url, "https://a:1")
  })

  it("names a file with the token, which other users must not be able to read", async () => {
    const path = join(folder, "token")
    writeFileSync(path, "t\n", { mode: 0o600 })
    const env = { ALMANAC_URL: "http://a:1", ALMANAC_TOKEN_FILE: path }
    assert.equal((await headersOf(asking(env))).authorization, "Bearer t")
    chmodSync(path, 0o640)
    const { message } = await endingOf(accessOf(asking(env)))
    assert.match(message, /other users can read it\n {2}next: chmod 600/)
  })

  it.each(["ftp://a", "a:1", "http://u:p@a:1"])("takes no %s as an address", async (url) => {
    const { ending, message } = await endingOf(accessOf(asking({ ALMANAC_URL: url })))
    assert.equal(ending, "usage")
    assert.notInclude(message, "u:p")
  })
})

describe("a profile", () => {
  const text =
    '[default]\nurl = "http://d:1"\ntoken = "dt"\n[lab]\nurl = "http://l:1"\ntoken = "lt"\n'

  it("is selected by name, or is the default", async () => {
    profiles(text)
    development()
    assert.equal((await headersOf(asking())).authorization, "Bearer dt")
    assert.equal((await headersOf(asking({}, { profile: "lab" }))).url, "http://l:1")
    assert.equal((await headersOf(asking({ ALMANAC_PROFILE: "lab" }))).url, "http://l:1")
    const env = { ALMANAC_URL: "http://e:1" }
    assert.equal((await headersOf(asking(env))).url, "http://e:1")
    assert.equal((await headersOf(asking(env, { profile: "lab" }))).url, "http://l:1")
  })

  it.each([0o644, 0o640, 0o604, 0o620])("with a token is refused at mode %o", async (mode) => {
    profiles(text, mode)
    const { ending, message } = await endingOf(accessOf(asking()))
    assert.equal(ending, "usage")
    assert.match(message, /holds a secret, but other users can read it/)
  })

  it("without secrets may be readable by other users", async () => {
    profiles('[default]\nurl = "http://d:1"\n', 0o644)
    assert.deepEqual(await headersOf(asking()), { url: "http://d:1" })
  })

  it("is rejected with one line that contains no secret", async () => {
    const wrong = [
      ['[default]\nurl = "http://d:1"\ntokem = "geheim"\n', /has an unknown key tokem/],
      ['[default]\nurl = "http://d:1"\ntoken = "geheim\n', /profiles\.toml: /],
      ["[default]\nurl = 1\n", /url must be a string/],
      ['default = "geheim"\n', /must be a table/],
      ['[default]\ntoken = "geheim"\n', /has no url, os_cloud or os_auth_url/],
    ] as const
    for (const [one, output] of wrong) {
      profiles(one)
      const { ending, message } = await endingOf(accessOf(asking()))
      assert.equal(ending, "usage")
      assert.match(message, output)
      assert.notInclude(message, "geheim")
    }
    const absent = await endingOf(accessOf(asking({}, { profile: "x" })))
    assert.match(absent.message, /no profile x; it has: default/)
  })
})

describe("Keystone", () => {
  const issued = (url: string) => ({
    token: {
      catalog: [
        { type: "identity", endpoints: [] },
        {
          type: "share-protection",
          endpoints: [
            { interface: "internal", region_id: "one", url: "http://internal:1" },
            { interface: "public", region_id: "one", url: `${url}/v1` },
            { interface: "public", region_id: "two", url: "http://two:1/v1" },
          ],
        },
      ],
    },
  })
  const user = { OS_USERNAME: "u", OS_PASSWORD: "geheim", OS_PROJECT_NAME: "p" }
  const scoped = { project: { name: "p", domain: { id: "default" } } }
  const password = { user: { name: "u", domain: { id: "default" }, password: "geheim" } }

  it.each([
    ["a password", user, { password, methods: ["password"] }, scoped],
    [
      "an application credential",
      { OS_APPLICATION_CREDENTIAL_ID: "a", OS_APPLICATION_CREDENTIAL_SECRET: "s" },
      {
        methods: ["application_credential"],
        application_credential: { id: "a", secret: "s" },
      },
      undefined,
    ],
    ["a token", { OS_TOKEN: "t", OS_DOMAIN_ID: "d" }, undefined, { domain: { id: "d" } }],
  ])("is signed in to by %s", async (_, env, identity, scope) => {
    const keystone = await scripted((_, answer) =>
      json(answer, 201, issued("http://public:1"), { "x-subject-token": "issued" }),
    )
    const all = { ...env, OS_AUTH_URL: `${keystone.url}/v3` }
    const found = await headersOf(asking(all))
    assert.deepEqual(found, { url: "http://public:1", "x-auth-token": "issued" })
    const [{ path, body } = { path: "", body: "" }] = keystone.heard
    assert.equal(path, "/v3/auth/tokens")
    const { auth } = JSON.parse(body.toString())
    assert.deepEqual(auth.identity, identity ?? { methods: ["token"], token: { id: "t" } })
    assert.deepEqual(auth.scope, scope)
    const two = await headersOf(asking({ ...all, OS_REGION_NAME: "two" }))
    assert.equal(two.url, "http://two:1")
    await keystone.close()
  })

  it("renews the token shortly before it expires", async () => {
    let tokens = 0
    const issued_at = Date.UTC(2026, 10, 22)
    const keystone = await scripted((_, answer) => {
      const { token } = issued("http://public:1")
      const lifetime_ms = tokens === 0 ? 0 : 3_600_000
      const times = {
        issued_at: new Date(issued_at).toISOString(),
        expires_at: new Date(issued_at + lifetime_ms).toISOString(),
      }
      tokens++
      json(answer, 201, { token: { ...token, ...times } }, { "x-subject-token": `t${tokens}` })
    })
    const access = await accessOf(asking({ ...user, OS_AUTH_URL: keystone.url }))
    assert.equal(keystone.heard.length, 1)
    for (let again = 0; again < 3; again++) {
      assert.deepEqual(await access.headers("tenant", signal), { "x-auth-token": "t2" })
    }
    await keystone.close()
  })

  it("needs a valid URL before anything is sent", async () => {
    for (const OS_AUTH_URL of ["keystone", "http://u:geheim@k:1"]) {
      const { ending, message } = await endingOf(accessOf(asking({ ...user, OS_AUTH_URL })))
      assert.equal(ending, "usage")
      assert.notInclude(message, "geheim")
    }
  })

  it("fails with advice and without the password", async () => {
    const keystone = await scripted((_, answer) => json(answer, 401, { error: { message: "no" } }))
    const env = { ...user, OS_AUTH_URL: keystone.url }
    const { ending, message } = await endingOf(accessOf(asking(env)))
    assert.equal(ending, "forbidden")
    assert.match(message, /next: check OS_USERNAME/)
    assert.notInclude(message, "geheim")
    await keystone.close()
  })
})
