import { assert, describe } from "@effect/vitest"
import { Effect } from "effect"
import { address } from "#actors/commands.ts"
import { Rollout } from "#actors/share-protection/rollout.ts"
import { WorkerId } from "#schemas/share-protection/id.ts"
import { CreateRollout } from "#schemas/share-protection/rollout.ts"
import {
  admin,
  bucket,
  bucketOf,
  made,
  owner,
  policyOf,
  template,
  unknown_id,
} from "../../world/share-protection/http/given.ts"
import { World } from "../../world/share-protection/http/ports.ts"
import { type Client, isRefused, served } from "../../world/share-protection/http/served.ts"
import { register, run, tell } from "../../world/share-protection/http/transitions.ts"
import { uuid } from "../../world/share-protection/samples.ts"

interface Collection {
  readonly path: string
  readonly key: string
  readonly token: string
  readonly order: "asc" | "desc"
}

const collections: ReadonlyArray<Collection> = [
  { path: "/v1/targets", key: "targets", token: "tenant", order: "asc" },
  { path: "/v1/policies", key: "policies", token: "tenant", order: "asc" },
  { path: "/v1/backups", key: "backups", token: "tenant", order: "desc" },
  { path: "/v1/restores", key: "restores", token: "tenant", order: "desc" },
  { path: "/v1/jobs", key: "jobs", token: "tenant", order: "desc" },
  { path: "/v1/admin/targets", key: "targets", token: "admin", order: "asc" },
  { path: "/v1/admin/jobs", key: "jobs", token: "admin", order: "desc" },
  { path: "/v1/admin/workers", key: "workers", token: "admin", order: "asc" },
  { path: "/v1/admin/rollouts", key: "rollouts", token: "admin", order: "asc" },
]

const shares = [0, 1, 2].map((n) => uuid(60 + n))

/** Three resources of each kind. */
const filled = Effect.fnUntraced(function* (ask: Client) {
  const world = yield* World
  const [share] = world.shares
  if (share === undefined) throw new Error("There is no share.")
  world.shares = shares.map((id) => ({ ...share, id: id as typeof share.id }))
  for (const [n, share_id] of shares.entries()) {
    const { target, job } = yield* made(ask, "/v1/targets", bucket)
    yield* register(WorkerId.make(uuid(31 + n)))
    yield* run(job.id, 1)
    yield* made(ask, "/v1/policies", { ...policyOf(target.id), share_id })
    const backup = yield* made(ask, "/v1/backups", { share_id, target_id: target.id })
    yield* run(backup.job.id, 2)
    yield* made(ask, "/v1/restores", { backup_id: backup.backup.id })
    const rollout = CreateRollout.make({ image: "worker-1", domain_ids: ["all"] as never })
    yield* tell(address(Rollout, uuid(51 + n), rollout))
  }
})

/** Ids, page by page. */
const walked = Effect.fnUntraced(function* (ask: Client, { path, key, token }: Collection) {
  const pages: Array<ReadonlyArray<string>> = []
  let marker: string | null = ""
  while (marker !== null && pages.length < 20) {
    const query: string = marker === "" ? "limit=2" : `limit=2&marker=${marker}`
    const { status, body } = yield* ask("GET", `${path}?${query}`, undefined, { token })
    assert.equal(status, 200)
    const ids = body[key].map(({ id }: { readonly id: string }) => id)
    const { limit, count, next_marker } = body.pagination
    assert.deepEqual([limit, count], [2, ids.length])
    if (next_marker !== null) assert.equal(next_marker, ids.at(-1))
    marker = next_marker
    pages.push(ids)
  }
  return pages
})

describe("every collection", () => {
  served("is paginated, with each item once and in order", (ask) =>
    Effect.gen(function* () {
      yield* filled(ask)
      for (const collection of collections) {
        const pages = yield* walked(ask, collection)
        const { path, key, token, order } = collection
        const whole = yield* ask("GET", path, undefined, { token })
        const ids: ReadonlyArray<string> = whole.body[key].map(
          ({ id }: { readonly id: string }) => id,
        )
        assert.isAtLeast(ids.length, 3, path)
        assert.deepEqual(pages.flat(), ids, path)
        const sorted = order === "asc" ? ids.toSorted() : ids.toSorted().reverse()
        assert.deepEqual(ids, sorted, path)
        assert.equal(whole.body.pagination.next_marker, null)
      }
    }),
  )
  served("rejects a limit outside 1 to 1000, and a marker that is not an id", (ask) =>
    Effect.gen(function* () {
      for (const { path, token } of collections) {
        for (const query of [
          "limit=0",
          "limit=1001",
          "limit=-1",
          "limit=ten",
          "limit=1.5",
          "limit=",
        ]) {
          const answer = yield* ask("GET", `${path}?${query}`, undefined, { token })
          isRefused(answer, 400, "svc.validation_error", "query.limit")
        }
        for (const marker of ["x", "1", uuid(1).slice(1), "%20"]) {
          const answer = yield* ask("GET", `${path}?marker=${marker}`, undefined, { token })
          isRefused(answer, 400, "svc.validation_error", "query.marker")
        }
        for (const limit of [1, 1000]) {
          const answer = yield* ask("GET", `${path}?limit=${limit}`, undefined, { token })
          assert.deepEqual(answer.body.pagination, { limit, count: 0, next_marker: null })
        }
      }
    }),
  )
  served("accepts a marker of another or no item: it is a position", (ask) =>
    Effect.gen(function* () {
      const ids = [
        (yield* made(ask, "/v1/targets", bucket)).target.id,
        (yield* made(ask, "/v1/targets", bucket)).target.id,
      ]
      const idsAfter = (marker: string) =>
        Effect.map(ask("GET", `/v1/targets?marker=${marker}`), ({ body }) =>
          body.targets.map(({ id }: { readonly id: string }) => id),
        )
      const low = "00000000-0000-0000-0000-000000000000"
      assert.deepEqual(yield* idsAfter(low), ids)
      assert.deepEqual(yield* idsAfter("ffffffff-ffff-ffff-ffff-ffffffffffff"), [])
      assert.deepEqual(yield* idsAfter(ids[0].toUpperCase()), [ids[1]])
    }),
  )
  served("accepts a marker whose item is gone", (ask) =>
    Effect.gen(function* () {
      const ids: Array<string> = []
      for (const name of ["one", "two", "three"]) {
        ids.push((yield* made(ask, "/v1/targets", { ...bucket, name })).target.id)
      }
      const { body } = yield* ask("GET", "/v1/targets?limit=2")
      assert.equal(body.pagination.next_marker, ids[1])
      yield* ask("DELETE", `/v1/targets/${ids[1]}`)
      const next = yield* ask("GET", `/v1/targets?limit=2&marker=${ids[1]}`)
      assert.deepEqual(next.body.pagination, { limit: 2, count: 1, next_marker: null })
      assert.equal(next.body.targets[0].id, ids[2])
    }),
  )
  served("shows only the caller's own items for any marker", (ask) =>
    Effect.gen(function* () {
      yield* made(ask, "/v1/targets", bucket)
      const theirs = { token: "tenant_b" }
      const { body } = yield* ask("GET", `/v1/targets?marker=${unknown_id}`, undefined, theirs)
      assert.deepEqual(body.targets, [])
    }),
  )
  served(
    "has the limits of the configuration",
    (ask) =>
      Effect.gen(function* () {
        for (const { path, token } of collections) {
          const { body } = yield* ask("GET", path, undefined, { token })
          assert.equal(body.pagination.limit, 5)
          const answer = yield* ask("GET", `${path}?limit=11`, undefined, { token })
          isRefused(answer, 400, "svc.validation_error", "1 to 10")
          assert.equal((yield* ask("GET", `${path}?limit=10`, undefined, { token })).status, 200)
        }
      }),
    { settings: { api: { default_limit: 5, max_limit: 10 } } },
  )
})

describe("in Shape B", () => {
  served(
    "the array is called items, and everything else is alike",
    (ask) =>
      Effect.gen(function* () {
        for (const { path, token } of collections) {
          const { body } = yield* ask("GET", path, undefined, { token })
          const pagination = { limit: 100, count: 0, next_marker: null }
          assert.deepEqual(body, { items: [], pagination })
          const answer = yield* ask("GET", `${path}?limit=0`, undefined, { token })
          isRefused(answer, 400, "svc.validation_error", "query.limit")
        }
      }),
    { shape: "B" },
  )
  served(
    "templates and buckets are walked too",
    (ask) =>
      Effect.gen(function* () {
        const ids: Array<string> = []
        for (const name of ["one", "two", "three"]) {
          ids.push(
            String((yield* made(ask, "/v1/target-templates", { ...template, name }, "owner")).id),
          )
        }
        for (const [path, token] of [
          ["/v1/target-templates", "owner"],
          ["/v1/target-templates", "tenant"],
          ["/v1/admin/target-templates", "admin"],
        ] as const) {
          const collection = { path, key: "items", token, order: "asc" } as const
          assert.deepEqual(yield* walked(ask, collection), [ids.slice(0, 2), ids.slice(2)])
          const answer = yield* ask("GET", `${path}?limit=1001`, undefined, { token })
          isRefused(answer, 400, "svc.validation_error", "query.limit")
        }
        const buckets = []
        for (const id of ids) {
          buckets.push((yield* made(ask, "/v1/targets", bucketOf(id), "owner")).id)
        }
        const listed = { path: "/v1/targets", key: "items", token: "owner", order: "asc" } as const
        assert.deepEqual((yield* walked(ask, listed)).flat(), buckets)
        assert.equal((yield* ask("GET", "/v1/targets", undefined, owner)).status, 200)
        assert.equal(
          (yield* ask("GET", "/v1/admin/targets", undefined, admin)).body.items.length,
          3,
        )
      }),
    { shape: "B" },
  )
})
