/**
 * The whole service in a real cloud: Keystone authenticates callers, Barbican stores secrets,
 * Manila provides shares, Ceph's gateway provides buckets, and restic is the engine.
 */
import { readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { afterAll, assert, expect } from "@effect/vitest"
import { Effect, Redacted } from "effect"
import { programs, service_password } from "../../world/programs/openstack/configuration.ts"
import { pythonRun } from "../../world/programs/openstack/process.ts"
import {
  type Answer,
  ask,
  type Json,
  login,
  passwordOf,
} from "../../world/programs/openstack/seed.ts"
import {
  deleteTrust,
  exportFolder,
  makeShare,
  makeTrust,
  manilaSays,
  putSecret,
  until,
  validate,
} from "../../world/programs/openstack/tenants.ts"
import { describeOpenstack, Openstack } from "../../world/programs/openstack.ts"
import { testRadosgw } from "../../world/programs/radosgw.ts"
import { cleanUp, newFolder, outputOf, runVerb, startServer } from "../../world/server/server.ts"

afterAll(cleanUp, 60_000)

/** Startup of the programs, on a machine that is also busy with other work. */
const whole_ms_max = 300_000

/**
 * The lifetime of a token that must be accepted once, on a machine that is also busy with other
 * work.
 */
const token_seconds = 8

type Cloud = Openstack["Service"]

const environmentOf = ({ auth_url }: Cloud, folder: string) => ({
  ALMANAC_IDENTITY__KIND: "keystone",
  ALMANAC_KEYSTONE_AUTHTOKEN__AUTH_URL: auth_url,
  ALMANAC_KEYSTONE_AUTHTOKEN__USERNAME: "svcprotect",
  ALMANAC_KEYSTONE_AUTHTOKEN__PASSWORD: service_password,
  ALMANAC_KEYSTONE_AUTHTOKEN__REGION: "RegionOne",
  ALMANAC_MANILA__MOUNT: "local",
  ALMANAC_DATABASE__CONNECTION: `sqlite:///${join(folder, "read-models")}`,
  ALMANAC_WORKER__CAPACITY_SLOTS: "2",
  ALMANAC_ENGINE__REQUIRE_FIPS_PROFILE: "false",
  // The S3 server of these tests runs on this machine.
  ALMANAC_TARGETS__ALLOWED_NETWORKS: "127.0.0.0/8",
  ALMANAC_COMPUTE__KIND: "local",
  ALMANAC_CONDUCTOR__WORKER_BOOT_IMAGE: "almanac-agent",
})

const asking = (...args: Parameters<typeof ask>) => Effect.promise(() => ask(...args))

/** A server in the cloud, running until the scope closes. */
const served = Effect.gen(function* () {
  const cloud = yield* Openstack
  const folder = newFolder()
  const server = yield* Effect.acquireRelease(
    Effect.promise(() => startServer(folder, environmentOf(cloud, folder))),
    (running) => Effect.promise(() => running.stop()),
  )
  return { cloud, folder, server }
})

/**
 * Polls a path until its response meets the condition, for at most 50 s; returns the last response.
 */
const settled = (url: string, token: string, is_so: (body: Json) => boolean) =>
  until(asking("GET", url, { token }), ({ body }) => is_so(body))

const isOver = ({ status }: Json) => /^(available|error|failed|completed)$/.test(status)

const created = ({ status, body }: Answer): Json => {
  assert.isBelow(status, 300, JSON.stringify(body))
  return body
}

describeOpenstack("the service in a cloud", (it) => {
  it.effect(
    "admits only Keystone's users, with Keystone's roles",
    () =>
      Effect.gen(function* () {
        const { cloud, server } = yield* served
        const targets = `${server.url}/v1/targets`
        const status = (token?: string, headers = {}) =>
          Effect.map(asking("GET", targets, { ...(token && { token }), headers }), (a) => a.status)
        const alice = yield* cloud.tokenOf("alice", "tenant-a")
        expect(yield* status(alice)).toBe(200)
        const forged = { "x-roles": "admin,svc_admin", "x-project-id": "p", "x-user-id": "u" }
        const none = yield* asking("GET", targets, { headers: forged })
        expect([none.status, none.body.code]).toEqual([401, "svc.unauthorized"])
        expect(none.headers.get("www-authenticate")).toContain(`Keystone uri="${cloud.auth_url}"`)
        for (const token of ["garbage", "x".repeat(5000)]) expect(yield* status(token)).toBe(401)
        const admin = (token: string) =>
          Effect.map(
            asking("GET", `${server.url}/v1/admin/targets`, { token, headers: forged }),
            (answer) => answer.status,
          )
        expect(yield* admin(alice)).toBe(403)
        expect(yield* admin(yield* cloud.tokenOf("operator", "service"))).toBe(200)
        const base = cloud.auth_url.replace("/v3", "")
        const owner = { user: { id: cloud.seed.users.owner ?? "" }, password: passwordOf("owner") }
        const domain = { domain: { id: cloud.seed.domain } }
        const ofDomain = yield* Effect.promise(() => login(base, { ...owner, scope: domain }))
        expect(yield* status(ofDomain)).toBe(403)
        const unscoped = yield* Effect.promise(() => login(base, { ...owner, scope: "unscoped" }))
        expect(yield* status(unscoped)).toBe(403)
        const headers = { "x-subject-token": alice }
        yield* asking("DELETE", `${cloud.auth_url}/auth/tokens`, { token: alice, headers })
        expect((yield* validate(cloud, alice)).status).toBe(404)
        expect(yield* status(alice)).toBe(401)
      }).pipe(Effect.scoped),
    whole_ms_max,
  )

  it.effect(
    "rejects an expired token",
    () =>
      Effect.gen(function* () {
        const { cloud, folder, server } = yield* served
        const path = join(folder, "token")
        yield* pythonRun(cloud.place, "keystone", [
          join(programs, "short_token.py"),
          join(cloud.place.folder, "keystone/keystone.conf"),
          cloud.seed.users.alice ?? "",
          cloud.seed.projects["tenant-a"] ?? "",
          String(token_seconds),
          path,
        ])
        const token = readFileSync(path, "ascii")
        const status = Effect.map(
          asking("GET", `${server.url}/v1/targets`, { token }),
          (answer) => answer.status,
        )
        expect(yield* status).toBe(200)
        yield* until(validate(cloud, token), (answer) => answer.status === 404)
        expect(yield* status).toBe(401)
      }).pipe(Effect.scoped),
    whole_ms_max,
  )

  it.effect(
    "stops the start where something required is missing, with one line",
    () =>
      Effect.gen(function* () {
        const cloud = yield* Openstack
        const folder = newFolder()
        const whole = environmentOf(cloud, folder)
        for (const [name, output] of [
          ["ALMANAC_DATABASE__CONNECTION", "database.connection is required"],
          ["ALMANAC_WORKER__CAPACITY_SLOTS", "worker.capacity_slots is required"],
          ["ALMANAC_KEYSTONE_AUTHTOKEN__PASSWORD", "keystone_authtoken.password is required"],
        ] as const) {
          const rest = Object.fromEntries(Object.entries(whole).filter(([key]) => key !== name))
          const { code, stderr } = yield* Effect.promise(() => runVerb(folder, ["serve"], rest))
          expect(code).not.toBe(0)
          expect(stderr.trim().split("\n").at(-1)).toContain(output)
        }
      }),
    whole_ms_max,
  )

  it.effect(
    "is in the catalogue once, however often it is registered",
    () =>
      Effect.gen(function* () {
        const cloud = yield* Openstack
        const folder = newFolder()
        const register = (url: string) =>
          Effect.promise(() =>
            runVerb(folder, ["catalog", "register", "--url", url], environmentOf(cloud, folder)),
          )
        const done = (url: string) => Effect.map(register(url), ({ stdout }) => stdout.trim())
        const url = "https://backup.example.org/v1"
        expect(yield* done(`${url}/`)).toBe(`share-protection public ${url} created`)
        expect(yield* done(url)).toBe(`share-protection public ${url} unchanged`)
        const moved = "https://moved.example.org/v1"
        expect(yield* done(moved)).toBe(`share-protection public ${moved} updated`)
        const token = yield* cloud.tokenOf("alice", "tenant-a")
        const { body } = yield* asking("GET", `${cloud.auth_url}/auth/catalog`, { token })
        const found = body.catalog.filter(({ type }: Json) => type === "share-protection")
        expect(found.length).toBe(1)
        expect(found[0].endpoints.map((one: Json) => [one.interface, one.region, one.url])).toEqual(
          [["public", "RegionOne", moved]],
        )
        const wrong = yield* register("ftp://x")
        expect([wrong.code === 0, wrong.stderr]).toEqual([
          false,
          expect.stringContaining("--url must"),
        ])
      }),
    whole_ms_max,
  )

  it.effect(
    "makes nothing in the cloud for an operator's request, and one token for all its retries",
    () =>
      Effect.gen(function* () {
        const { cloud, server } = yield* served
        const token = yield* cloud.tokenOf("operator", "service")
        const project_id = cloud.seed.projects["tenant-a"] ?? ""
        const twice = (path: string, body: object) => {
          const headers = { "idempotency-key": `retry of ${path}` }
          const post = asking("POST", `${server.url}/v1/admin/${path}`, { token, body, headers })
          return Effect.all([post, post])
        }
        for (const [path, body, command] of [
          ["secrets", { project_id, name: "retried", payload: "hidden" }, "openstack secret store"],
          ["trusts", { project_id, roles: ["member"] }, "openstack trust create"],
        ] as const) {
          for (const answer of yield* twice(path, body)) {
            expect([answer.status, answer.body.code]).toEqual([503, "svc.backend_unavailable"])
            expect(answer.body.detail).toContain(command)
          }
        }
        const [first, again] = yield* twice("tokens", {
          name: "retried",
          scopes: ["blobs:read"],
          roles: [],
        })
        expect(created(first).token).toBeTruthy()
        expect(created(again)).toEqual(first.body)
      }).pipe(Effect.scoped),
    whole_ms_max,
  )

  it.effect(
    "backs up a share from a snapshot, and restores it into a new one",
    () =>
      Effect.gen(function* () {
        const { cloud, server } = yield* served
        const { access_key, secret_key, bucket } = yield* testRadosgw
        const { endpoint, bucket: bucket_name } = yield* bucket()
        const alice = ["alice", "tenant-a"] as const
        const token = yield* cloud.tokenOf(...alice)
        const keep = (secret: Redacted.Redacted<string>) =>
          putSecret(cloud, alice, Buffer.from(Redacted.value(secret)), "text")
        const trust_id = yield* makeTrust(cloud)
        const post = (path: string, body: object) =>
          Effect.map(asking("POST", `${server.url}/v1/${path}`, { token, body }), created)
        const target = yield* post("targets", {
          name: "ceph",
          endpoint,
          bucket: bucket_name,
          trust_id,
          addressing_mode: "path",
          vault_secret_refs: [yield* keep(access_key), yield* keep(secret_key)],
        })
        const target_id = target.target?.id ?? target.id
        const enrolled = yield* settled(`${server.url}/v1/targets/${target_id}`, token, isOver)
        expect(enrolled.body.status, outputOf(server)).toBe("available")
        const share_id = yield* makeShare(cloud, { "a.txt": "before", "sub/b.txt": "kept" })
        const backup = yield* post("backups", { share_id, target_id, crash_consistent: true })
        const backup_id = backup.backup?.id ?? backup.id
        const kept = yield* settled(`${server.url}/v1/backups/${backup_id}`, token, isOver)
        expect([kept.body.status, kept.body.crash_consistent], outputOf(server)).toEqual([
          "available",
          true,
        ])
        const live = yield* exportFolder(cloud, share_id)
        writeFileSync(join(live, "a.txt"), "after")
        rmSync(join(live, "sub"), { recursive: true })
        const restored = yield* post("restores", { backup_id, mode: "new_share" })
        const restore_id = restored.restore?.id ?? restored.id
        const over = yield* settled(`${server.url}/v1/restores/${restore_id}`, token, isOver)
        expect(over.body.new_share_id, JSON.stringify(over.body)).toBeTruthy()
        const fresh = yield* exportFolder(cloud, over.body.new_share_id)
        expect(readdirSync(fresh).toSorted()).toEqual(["a.txt", "sub"])
        expect(readFileSync(join(fresh, "a.txt"), "utf8")).toBe("before")
        expect(readFileSync(join(fresh, "sub/b.txt"), "utf8")).toBe("kept")
        const { body } = yield* manilaSays(cloud, `/shares/${over.body.new_share_id}`)
        expect(body.share.project_id).toBe(cloud.seed.projects["tenant-a"])
        const left = yield* manilaSays(cloud, "/snapshots?all_tenants=1")
        expect(left.body.snapshots).toEqual([])
        yield* deleteTrust(cloud, trust_id)
        const other = { name: "other", endpoint, bucket: bucket_name, trust_id }
        const denied = yield* asking("POST", `${server.url}/v1/targets`, { token, body: other })
        expect(denied.body.code).toBe("svc.trust_access_denied")
      }).pipe(Effect.scoped),
    whole_ms_max,
  )
})
