import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, describe, expect, it } from "@effect/vitest"
import { Effect, Fiber, Redacted, Stream } from "effect"
import { TestClock } from "effect/testing"
import { v7 } from "uuid"
import { Shares } from "#actors/share-protection/ports/shares.ts"
import { sharesManila } from "#adapters/share-protection/shares/manila.ts"
import type { Settings } from "#schemas/settings.ts"
import { JobId, ProjectId, ShareId } from "#schemas/share-protection/id.ts"
import {
  type Fake,
  fake,
  ownToken,
  type Said,
  sessionOf,
} from "../../../world/share-protection/openstack/fake.ts"

const folder = mkdtempSync(join(tmpdir(), "almanac-manila-"))
afterAll(() => rmSync(folder, { recursive: true }))

const project_id = ProjectId.make("p1")
const share_id = ShareId.make(v7())
const job_id = JobId.make(v7())
const name = `almanac-${job_id}`

const share = (change: object = {}) => ({
  id: share_id,
  project_id,
  name: null,
  size: 2,
  status: "available",
  share_proto: "NFS",
  share_type: "t1",
  snapshot_support: true,
  mount_snapshot_support: true,
  create_share_from_snapshot_support: true,
  ...change,
})
const port_share = { ...share(), name: "s", size_bytes: 1 }
const exported = { status: 200, body: { export_locations: [{ path: `127.0.0.1:${folder}` }] } }
const snapshot = (status: string, id = "n1") => ({ id, name, share_id, status })

const v2 = "/manila/v2"
const by = Effect.succeed({ project_id, token: Redacted.make("tenant-token") })

const opened = Effect.fnUntraced(function* (manila: Partial<Settings["manila"]> = {}) {
  const cloud = yield* fake
  const context = yield* sessionOf(cloud)
  cloud.answers[`GET ${v2}/shares/${share_id}/export_locations`] = () => exported
  const settings = { ...cloud.settings.manila, ...manila }
  const shares = yield* Effect.provide(Shares, sharesManila(settings)).pipe(
    Effect.provideContext(context),
  )
  return { cloud, shares }
})

/** Returns the responses in order, and repeats the last one from then on. */
const sequence = (...all: ReadonlyArray<Said>) => {
  let n = 0
  return () => all[Math.min(n++, all.length - 1)] ?? "drop"
}

/** The changes that the fake was requested to make. */
const done = ({ requests }: Fake) =>
  requests
    .filter(({ method, path }) => method !== "GET" && path.startsWith(v2))
    .map(({ method, path, body }) => [method, path.slice(v2.length), body && JSON.parse(body)])

describe("Manila", () => {
  it.effect("is asked at its address without a project, in one version", () =>
    Effect.gen(function* () {
      const { cloud, shares } = yield* opened()
      cloud.answers[`GET ${v2}/shares/${share_id}`] = () => ({
        status: 200,
        body: { share: share() },
      })
      const found = yield* shares.find(project_id, share_id)
      expect([found?.name, found?.size_bytes]).toEqual([share_id, 2 * 2 ** 30])
      expect(yield* shares.find(ProjectId.make("p2"), share_id)).toBeUndefined()
      expect(cloud.requests.at(-1)?.headers["x-openstack-manila-api-version"]).toBe("2.65")
    }),
  )

  it.effect("lists by limit and offset to the end, and only to who sees all", () =>
    Effect.gen(function* () {
      const { cloud, shares } = yield* opened()
      const all = Array.from({ length: 2500 }, () => share({ id: v7() }))
      cloud.answers[`GET ${v2}/shares/detail`] = ({ query }) => {
        const offset = Number(query.get("offset"))
        const page = all.slice(offset, offset + Number(query.get("limit")))
        return { status: 200, body: { shares: query.get("all_tenants") === "1" ? page : [] } }
      }
      const listed = yield* Stream.runCollect(shares.list)
      expect(listed.map(({ id }) => id)).toEqual(all.map(({ id }) => id))
      expect(cloud.count("GET", `${v2}/shares/detail`)).toBe(3)
    }),
  )

  it.effect("that would show only our own shares is not believed", () =>
    Effect.gen(function* () {
      const { cloud, shares } = yield* opened()
      cloud.answers["POST /v3/auth/tokens"] = () => ({
        status: 201,
        headers: { "x-subject-token": "t" },
        body: ownToken(cloud.url, { roles: [{ name: "service" }] }),
      })
      cloud.answers[`GET ${v2}/shares/detail`] = () => ({ status: 200, body: { shares: [] } })
      const error = yield* Effect.flip(Stream.runCollect(shares.list))
      expect(error.detail).toBe("The service user lacks the role admin (manila.admin_role).")
    }),
  )

  it.effect("creates a snapshot again if an earlier attempt failed", () =>
    Effect.gen(function* () {
      const { cloud, shares } = yield* opened()
      cloud.answers[`GET ${v2}/snapshots/detail`] = () => ({
        status: 200,
        body: { snapshots: [snapshot("error", "n0")] },
      })
      cloud.answers[`DELETE ${v2}/snapshots/n0`] = () => ({ status: 202, body: "" })
      cloud.answers[`POST ${v2}/snapshots`] = () => ({
        status: 202,
        body: { snapshot: snapshot("creating") },
      })
      cloud.answers[`GET ${v2}/snapshots/n1`] = () => ({
        status: 200,
        body: { snapshot: snapshot("available") },
      })
      cloud.answers[`GET ${v2}/snapshots/n1/export-locations`] = () => ({
        status: 200,
        body: { share_snapshot_export_locations: [{ path: `localhost:${folder}` }] },
      })
      const source = yield* shares.prepare(port_share, { job_id, crash_consistent: true })
      expect(source).toEqual({ path: folder, crash_consistent: true, token: job_id })
      const made = { snapshot: { share_id, name, force: false } }
      expect(done(cloud)).toEqual([
        ["DELETE", "/snapshots/n0", ""],
        ["POST", "/snapshots", made],
      ])
    }),
  )

  it.effect("fails the job for a retry if its snapshot fails or times out", () =>
    Effect.gen(function* () {
      const { cloud, shares } = yield* opened({ deadline_seconds: 30 })
      let status = "error"
      cloud.answers[`GET ${v2}/snapshots/detail`] = () => ({ status: 200, body: { snapshots: [] } })
      cloud.answers[`POST ${v2}/snapshots`] = () => ({
        status: 202,
        body: { snapshot: snapshot("creating") },
      })
      cloud.answers[`GET ${v2}/snapshots/n1`] = () => ({
        status: 200,
        body: { snapshot: snapshot(status) },
      })
      const prepare = Effect.flip(shares.prepare(port_share, { job_id, crash_consistent: null }))
      expect((yield* prepare).detail).toBe(
        "Manila could not create a share or snapshot for a job: its status is error.",
      )
      status = "creating"
      const waiting = yield* Effect.forkChild(prepare)
      const looks = () => cloud.count("GET", `${v2}/snapshots/n1`)
      for (let seen = looks(); waiting.pollUnsafe() === undefined; ) {
        yield* Effect.repeat(Effect.yieldNow, {
          until: () => looks() > seen || waiting.pollUnsafe() !== undefined,
        })
        seen = looks()
        yield* TestClock.adjust("5 seconds")
      }
      expect((yield* Fiber.join(waiting)).detail).toContain("longer than 30 s")
    }),
  )

  it.effect("copies a snapshot that cannot be mounted to a share, and deletes both", () =>
    Effect.gen(function* () {
      const { cloud, shares } = yield* opened()
      const copy = share({ id: v7(), name, mount_snapshot_support: false })
      const copied = { status: 200, body: { share: copy } }
      const like = share({ mount_snapshot_support: false })
      let copies: ReadonlyArray<unknown> = []
      let snapshots: ReadonlyArray<unknown> = [snapshot("available")]
      cloud.answers[`GET ${v2}/shares/${share_id}`] = () => ({ status: 200, body: { share: like } })
      cloud.answers[`GET ${v2}/shares/detail`] = () => ({ status: 200, body: { shares: copies } })
      cloud.answers[`GET ${v2}/snapshots/detail`] = () => ({ status: 200, body: { snapshots } })
      cloud.answers[`GET ${v2}/snapshots/n1`] = sequence(
        { status: 200, body: { snapshot: snapshot("available") } },
        { status: 404 },
      )
      cloud.answers[`POST ${v2}/shares`] = () => copied
      cloud.answers[`GET ${v2}/shares/${copy.id}`] = sequence(copied, { status: 404 })
      cloud.answers[`GET ${v2}/shares/${copy.id}/export_locations`] = () => exported
      cloud.answers[`DELETE ${v2}/shares/${copy.id}`] = () => ({ status: 202, body: "" })
      cloud.answers[`DELETE ${v2}/snapshots/n1`] = () => ({ status: 202, body: "" })
      const unmountable = { ...port_share, mount_snapshot_support: false }
      const source = yield* shares.prepare(unmountable, { job_id, crash_consistent: null })
      expect([source.path, source.crash_consistent]).toEqual([folder, true])
      copies = [copy, share({ id: v7(), name: `${name}-of-somebody` })]
      yield* shares.release({ token: job_id })
      snapshots = []
      copies = []
      yield* shares.release({ token: job_id })
      const before = cloud.requests.length
      yield* shares.release({ token: "../shares" })
      expect(cloud.requests.length).toBe(before)
      const from = { share_proto: "NFS", size: 2, share_type: "t1", snapshot_id: "n1" }
      expect(done(cloud)).toEqual([
        ["POST", "/shares", { share: { ...from, name, is_public: false } }],
        ["DELETE", `/shares/${copy.id}`, ""],
        ["DELETE", "/snapshots/n1", ""],
      ])
    }),
  )

  it.effect("lets the workers in, and in to write where they could only read", () =>
    Effect.gen(function* () {
      const access_to = "10.0.0.0/24"
      const { cloud, shares } = yield* opened({ access_to })
      const action = `${v2}/shares/${share_id}/action`
      const rules = `GET ${v2}/share-access-rules`
      const rule = (access_level: string, state: string) => ({
        status: 200,
        body: { access_list: [{ id: "r1", access_to, state, access_level }] },
      })
      cloud.answers[`POST ${action}`] = () => ({ status: 200 })
      cloud.answers[rules] = sequence(rule("ro", "queued_to_apply"), rule("ro", "active"))
      const waiting = yield* Effect.forkChild(
        shares.prepare(port_share, { job_id, crash_consistent: false }),
      )
      yield* Effect.repeat(Effect.yieldNow, {
        until: () => cloud.count("GET", `${v2}/share-access-rules`) > 0,
      })
      yield* TestClock.adjust("1 second")
      expect((yield* Fiber.join(waiting)).crash_consistent).toBe(false)
      const none = { status: 200, body: { access_list: [] } }
      cloud.answers[`POST ${action}`] = sequence({ status: 400 }, { status: 202 }, { status: 200 })
      cloud.answers[rules] = sequence(rule("ro", "active"), none, rule("rw", "active"))
      expect(yield* shares.pathOf(port_share)).toBe(folder)
      const allow = (access_level: string) => ({
        allow_access: { access_type: "ip", access_to, access_level },
      })
      expect(done(cloud).map(([, , body]) => body)).toEqual([
        allow("ro"),
        allow("rw"),
        { deny_access: { access_id: "r1" } },
        allow("rw"),
      ])
      cloud.answers[rules] = () => rule("rw", "error")
      const error = yield* Effect.flip(shares.pathOf(port_share))
      expect(error.code).toBe("svc.network_strategy_precondition")
    }),
  )

  it.effect("makes a new share in the tenant's name alone, like the old one", () =>
    Effect.gen(function* () {
      const { cloud, shares } = yield* opened()
      const fresh = share({ id: share_id, status: "creating" })
      cloud.answers[`GET ${v2}/shares/detail`] = () => ({ status: 200, body: { shares: [] } })
      cloud.answers[`POST ${v2}/shares`] = () => ({ status: 200, body: { share: fresh } })
      cloud.answers[`GET ${v2}/shares/${share_id}`] = () => ({
        status: 200,
        body: { share: share() },
      })
      const wanted = { job_id, like: port_share, name: "restored", by }
      const made = yield* shares.create(project_id, wanted)
      expect([made.share.id, made.path]).toEqual([share_id, folder])
      const posted = cloud.requests.find(
        ({ method, path }) => method === "POST" && path === `${v2}/shares`,
      )
      expect(posted?.headers["x-auth-token"]).toBe("tenant-token")
      const name = "restored (unfinished)"
      const like = { share_proto: "NFS", size: 2, share_type: "t1", name }
      expect(JSON.parse(posted?.body ?? "")).toEqual({
        share: { ...like, metadata: { almanac_job: job_id }, is_public: false },
      })
      cloud.answers[`PUT ${v2}/shares/${share_id}`] = () => ({ status: 200, body: {} })
      yield* shares.finish(made.share, wanted)
      const renamed = cloud.requests.find(({ method }) => method === "PUT")
      expect(renamed?.headers["x-auth-token"]).toBe("tenant-token")
      expect(JSON.parse(renamed?.body ?? "")).toEqual({ share: { display_name: "restored" } })
    }),
  )

  it.effect("refuses a new share by another project's trust, a quota or a trust that is gone", () =>
    Effect.gen(function* () {
      const { cloud, shares } = yield* opened()
      cloud.answers[`GET ${v2}/shares/detail`] = () => ({ status: 200, body: { shares: [] } })
      const wanted = { job_id, like: port_share, name: "restored", by }
      const outcome = (project: string) =>
        Effect.map(Effect.flip(shares.create(ProjectId.make(project), wanted)), ({ code }) => code)
      expect(yield* outcome("p2")).toBe("svc.network_strategy_precondition")
      expect(done(cloud)).toEqual([])
      cloud.answers[`POST ${v2}/shares`] = () => ({ status: 413 })
      expect(yield* outcome("p1")).toBe("svc.backend_unavailable")
      const posted = done(cloud)[0]?.[2] as { readonly share: { readonly size: number } }
      expect(posted.share.size).toBe(100)
      cloud.answers[`POST ${v2}/shares`] = () => ({ status: 401 })
      expect(yield* outcome("p1")).toBe("svc.trust_access_denied")
    }),
  )
})
