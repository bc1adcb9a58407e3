/** `clouds.yaml`, found and parsed as by openstacksdk. */
import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { dirname, join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { afterEach, beforeEach } from "vitest"
import { accessOf } from "#cli/client/access.ts"
import { findCloud } from "#cli/client/clouds.ts"
import { endingOf, json, scripted } from "./scripted.ts"

let folder: string
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "almanac-clouds-"))
})
afterEach(() => rmSync(folder, { recursive: true, force: true }))

const env = (more: NodeJS.ProcessEnv = {}) => ({ HOME: folder, ...more })
const own = ".config/openstack/clouds.yaml"
const write = (name: string, text: string, mode = 0o600) => {
  const path = join(folder, name)
  mkdirSync(dirname(path), { recursive: true })
  writeFileSync(path, text)
  chmodSync(path, mode)
  return path
}

const lab = `clouds:
  lab:
    auth:
      auth_url: http://keystone:5000/v3
      username: me
      password: 0123
      project_name: &p research
      project_domain_id: default
      tenant_name: *p
    region_name: two
    identity_api_version: 3
    verify: true
  other: {auth: {auth_url: http://other:5000}}
`

describe("a cloud", () => {
  it("consists of auth and the keys next to it; digits stay strings", async () => {
    write(own, lab)
    assert.deepEqual(await findCloud(env(), "lab"), {
      auth_url: "http://keystone:5000/v3",
      username: "me",
      password: "0123",
      project_name: "research",
      project_domain_id: "default",
      region_name: "two",
    })
  })

  it("is read from the first existing file, as YAML or JSON", async () => {
    const named = (name: string) => `clouds: {lab: {auth: {auth_url: "http://${name}"}}}`
    write(
      ".config/openstack/clouds.json",
      JSON.stringify({ clouds: { lab: { auth: { auth_url: "http://json" } } } }),
    )
    const urlOf = async (more?: NodeJS.ProcessEnv) => (await findCloud(env(more), "lab")).auth_url
    assert.equal(await urlOf(), "http://json")
    write(".config/openstack/clouds.yml", named("yml"))
    assert.equal(await urlOf(), "http://yml")
    write(own, named("yaml"))
    assert.equal(await urlOf(), "http://yaml")
    write("xdg/openstack/clouds.yaml", named("xdg"))
    assert.equal(await urlOf({ XDG_CONFIG_HOME: join(folder, "xdg") }), "http://xdg")
    const path = write("mine.yaml", named("mine"))
    assert.equal(await urlOf({ OS_CLIENT_CONFIG_FILE: path }), "http://mine")
  })

  it("takes its secrets from secure.yaml", async () => {
    write(own, lab.replace("      password: 0123\n", ""), 0o644)
    write(".config/openstack/secure.yaml", "clouds: {lab: {auth: {password: geheim}}}")
    assert.equal((await findCloud(env(), "lab")).password, "geheim")
    chmodSync(join(folder, ".config/openstack/secure.yaml"), 0o640)
    const { message } = await endingOf(findCloud(env(), "lab"))
    assert.match(
      message,
      /secure\.yaml holds a secret, but other users can read it\n {2}next: chmod 600/,
    )
  })

  it("supports merge keys and the home folder", async () => {
    write(
      own,
      `base: &base {auth: {auth_url: "http://base", password: 07}, region_name: one}
clouds:
  lab:
    <<: *base
    region_name: two
    cacert: ~/ca.pem
`,
    )
    assert.deepEqual(await findCloud(env(), "lab"), {
      auth_url: "http://base",
      password: "07",
      region_name: "two",
      cacert: join(folder, "ca.pem"),
    })
  })

  it("is rejected if a password is no YAML, without quoting it", async () => {
    const warned: Array<string> = []
    const hear = ({ message }: Error) => void warned.push(message)
    process.on("warning", hear)
    try {
      const strange = ["*geheim", "|geheim", "!geheim", "!geheim!x y", "&geheim", '"\\xgeheim"']
      for (const password of strange) {
        write(own, `clouds:\n  lab:\n    auth:\n      password: ${password}\n`)
        const { ending, message } = await endingOf(findCloud(env(), "lab"))
        assert.equal(ending, "usage", password)
        assert.notMatch(message, /gehe|xge/)
      }
      // Warnings are emitted in a later turn of the event loop.
      await new Promise((resolve) => setImmediate(resolve))
      assert.deepEqual(warned, [])
    } finally {
      process.off("warning", hear)
    }
  })

  it("is rejected without showing a secret", async () => {
    const cases = [
      ["clouds: {other: {}}", /has no cloud lab; it has: other/],
      ["clouds: [", /clouds\.yaml: /],
      ["clouds:\n  lab:\n   auth: {password: 'geheim\n", /clouds\.yaml: /],
      ["clouds: {lab: {auth: {password: geheim}}}", /lab has no auth_url/],
      ["clouds: {lab: {auth_type: v3oidcpassword, auth: {}}}", /signs in with v3oidcpassword/],
      ["clouds: {lab: {verify: false, auth: {password: geheim}}}", /next: set cacert to/],
      ["clouds: {lab: {profile: rackspace}}", /a vendor profile/],
      [`a: &a [x,x,x,x,x,x,x,x,x]\n${bomb("b", "a")}${bomb("c", "b")}${bomb("d", "c")}`, /alias/],
    ] as const
    for (const [text, output] of cases) {
      write(own, text)
      const { ending, message } = await endingOf(findCloud(env(), "lab"))
      assert.equal(ending, "usage")
      assert.match(message, output)
      assert.notInclude(message, "geheim")
    }
    rmSync(join(folder, own))
    assert.match(
      (await endingOf(findCloud(env(), "lab"))).message,
      /none of these files exists: clouds\.yaml, \//,
    )
    write(own, lab, 0o644)
    assert.match((await endingOf(findCloud(env(), "lab"))).message, /other users can read it/)
    assert.equal((await findCloud(env(), "other")).auth_url, "http://other:5000")
  })
})

const bomb = (name: string, of: string) => `${name}: &${name} [${`*${of},`.repeat(9)}]\n`

describe("OS_CLOUD", () => {
  it("overrides the rest of the environment, except for the region", async () => {
    const keystone = await scripted((_, answer) =>
      json(
        answer,
        201,
        {
          token: {
            catalog: [
              {
                type: "share-protection",
                endpoints: [
                  { interface: "public", region_id: "two", url: "http://two:1/v1" },
                  { interface: "public", region_id: "one", url: "http://one:1/v1" },
                ],
              },
            ],
          },
        },
        { "x-subject-token": "issued" },
      ),
    )
    try {
      write(own, lab.replace("http://keystone:5000/v3", keystone.url))
      const { signal } = new AbortController()
      const ask = (more: NodeJS.ProcessEnv) =>
        accessOf({ env: env({ OS_CLOUD: "lab", ...more }), data_dir: folder, signal })
      const access = await ask({ OS_AUTH_URL: "http://127.0.0.1:9", OS_PASSWORD: "another" })
      assert.equal(access.url, "http://two:1")
      assert.deepEqual(await access.headers("tenant", signal), { "x-auth-token": "issued" })
      const [heard] = keystone.heard
      assert.deepInclude(JSON.parse(String(heard?.body)).auth.identity.password.user, {
        name: "me",
        password: "0123",
      })
      assert.equal((await ask({ OS_REGION_NAME: "one" })).url, "http://one:1")
      // Variables that point to another cloud: this cloud's token must not be sent there.
      assert.equal((await ask({ OS_ENDPOINT: "http://other:1" })).url, "http://two:1")
      assert.equal((await ask({ ALMANAC_URL: "http://given:1" })).url, "http://given:1")
      mkdirSync(join(folder, ".config", "almanac"), { recursive: true })
      writeFileSync(join(folder, ".config/almanac/profiles.toml"), '[lab]\nos_cloud = "lab"\n')
      const profile = { env: env(), profile: "lab", data_dir: folder, signal }
      assert.equal((await accessOf(profile)).url, "http://two:1")
    } finally {
      await keystone.close()
    }
  })
})
