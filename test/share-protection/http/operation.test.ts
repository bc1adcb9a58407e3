import { assert, describe } from "@effect/vitest"
import { Effect } from "effect"
import { address } from "#actors/commands.ts"
import { Domain } from "#actors/share-protection/domain.ts"
import { Reconciliation } from "#actors/share-protection/reconciliation.ts"
import { Target } from "#actors/share-protection/target.ts"
import { ApplyDomain } from "#schemas/share-protection/domain.ts"
import { TargetId } from "#schemas/share-protection/id.ts"
import {
  FinishReconciliation,
  StartReconciliation,
} from "#schemas/share-protection/reconciliation.ts"
import { RecordTargetUsage } from "#schemas/share-protection/target.ts"
import {
  admin,
  available,
  backedUp,
  bucket,
  made,
  policyOf,
  tenant_b,
} from "../../world/share-protection/http/given.ts"
import {
  domain_id,
  project_a,
  project_b,
  share_a,
  share_a2,
  share_b,
  trust_b,
  World,
} from "../../world/share-protection/http/ports.ts"
import { type Client, isRefused, served } from "../../world/share-protection/http/served.ts"
import { tell } from "../../world/share-protection/http/transitions.ts"
import { snapshot, usage_stats } from "../../world/share-protection/samples.ts"

const get = (ask: Client, path: string) => ask("GET", path, undefined, admin)
const post = (ask: Client, path: string) => ask("POST", path, undefined, admin)

describe("GET /v1/usage", () => {
  const nothing = { protected_shares: 0, backup_count: 0, protected_bytes: 0, stored_bytes: 0 }
  served("200: nothing yet", (ask) =>
    Effect.gen(function* () {
      const { status, body } = yield* ask("GET", "/v1/usage")
      assert.deepEqual([status, body], [200, { project_id: project_a, ...nothing }])
    }),
  )
  served("200: only the project's own; as of a time", (ask) =>
    Effect.gen(function* () {
      const { target_id } = yield* backedUp(ask, { policy: true })
      const id = TargetId.make(target_id)
      yield* tell(address(Target, id, RecordTargetUsage.make({ usage_stats })))
      assert.deepEqual((yield* ask("GET", "/v1/usage")).body, {
        project_id: project_a,
        protected_shares: 1,
        backup_count: 1,
        protected_bytes: 1000,
        stored_bytes: usage_stats.stored_bytes,
      })
      const theirs = yield* ask("GET", "/v1/usage", undefined, tenant_b)
      assert.deepEqual(theirs.body, { project_id: project_b, ...nothing })
      const before = yield* ask("GET", "/v1/usage?as_of=2020-01-01T00:00:00Z")
      assert.deepEqual(before.body, { project_id: project_a, ...nothing })
      isRefused(yield* ask("GET", "/v1/usage?as_of=then"), 400, "svc.validation_error")
    }),
  )
})

describe("GET /v1/admin/coverage", () => {
  const last_backup_at = snapshot.taken_at
  const untested = { last_proven_restorable: null, restore_test_failure: null }
  const bare = {
    policy_id: null,
    target_id: null,
    protected: false,
    backup_count: 0,
    last_backup_at: null,
    ...untested,
  }
  served("200: every share, protected or not, with the count alone", (ask) =>
    Effect.gen(function* () {
      const { target_id, policy_id } = yield* backedUp(ask, { policy: true })
      const { status, body } = yield* get(ask, "/v1/admin/coverage")
      assert.equal(status, 200)
      assert.deepEqual(body, {
        coverage: [
          {
            share_id: share_a,
            project_id: project_a,
            policy_id,
            target_id,
            protected: true,
            backup_count: 1,
            last_backup_at,
            ...untested,
          },
          { share_id: share_a2, project_id: project_a, ...bare },
          { share_id: share_b, project_id: project_b, ...bare },
        ],
        pagination: { count: 3 },
      })
      const of = yield* get(ask, `/v1/admin/coverage?project_id=${project_b}`)
      assert.deepEqual(of.body, {
        coverage: [{ share_id: share_b, project_id: project_b, ...bare }],
        pagination: { count: 1 },
      })
    }),
  )
  served(
    "200: a policy that is not enabled protects nothing; a share that is gone is known",
    (ask) =>
      Effect.gen(function* () {
        const { policy_id, target_id } = yield* backedUp(ask, { policy: true })
        yield* ask("PATCH", `/v1/policies/${policy_id}`, { enabled: false })
        const world = yield* World
        world.shares = world.shares.filter(({ id }) => id !== share_a)
        const [first] = (yield* get(ask, "/v1/admin/coverage")).body.coverage
        assert.deepEqual(first, {
          share_id: share_a,
          project_id: project_a,
          policy_id,
          target_id,
          protected: false,
          backup_count: 1,
          last_backup_at,
          ...untested,
        })
      }),
  )
  served("200: as of a time", (ask) =>
    Effect.gen(function* () {
      yield* backedUp(ask, { policy: true })
      const { body } = yield* get(ask, "/v1/admin/coverage?as_of=2020-01-01T00:00:00Z")
      assert.deepEqual(body, { coverage: [], pagination: { count: 0 } })
    }),
  )
  served("503: the share service is unavailable", (ask) =>
    Effect.gen(function* () {
      ;(yield* World).down.add("shares")
      isRefused(yield* get(ask, "/v1/admin/coverage"), 503, "svc.backend_unavailable")
    }),
  )
})

describe("GET /v1/admin/targets", () => {
  served("200: those of all projects, of one, of a state", (ask) =>
    Effect.gen(function* () {
      const id = yield* available(ask)
      const theirs = yield* made(ask, "/v1/targets", { ...bucket, trust_id: trust_b }, "tenant_b")
      const of = (query: string) =>
        Effect.map(get(ask, `/v1/admin/targets${query}`), ({ body }) =>
          body.targets.map(({ id }: { readonly id: string }) => id),
        )
      assert.deepEqual(yield* of(""), [id, theirs.target.id])
      assert.deepEqual(yield* of("?status=available"), [id])
      assert.deepEqual(yield* of(`?project_id=${project_b}`), [theirs.target.id])
    }),
  )
})

describe("/v1/admin/scheduling", () => {
  const path = "/v1/admin/scheduling"
  served("200: running; the next run is the earliest of all policies", (ask) =>
    Effect.gen(function* () {
      const idle = { paused: false, paused_at: null, next_run: null }
      assert.deepEqual((yield* get(ask, path)).body, idle)
      const { target } = yield* made(ask, "/v1/targets", bucket)
      const yearly = { ...policyOf(target.id), schedule: "0 0 1 1 *" }
      yield* made(ask, "/v1/policies", yearly)
      const soon = { ...policyOf(target.id), schedule: "* * * * *", share_id: share_a2 }
      const { id } = yield* made(ask, "/v1/policies", soon)
      const { next_run } = (yield* get(ask, path)).body
      const wait_ms = Date.parse(next_run) - Date.now()
      assert.isTrue(wait_ms > -1000 && wait_ms <= 60_000, next_run)
      yield* ask("PATCH", `/v1/policies/${id}`, { enabled: false })
      assert.match((yield* get(ask, path)).body.next_run, /^\d{4}-01-01T00:00:00\.000Z$/)
    }),
  )
  served("202: paused and resumed, idempotently", (ask) =>
    Effect.gen(function* () {
      const { target } = yield* made(ask, "/v1/targets", bucket)
      yield* made(ask, "/v1/policies", policyOf(target.id))
      const paused = yield* post(ask, `${path}/pause`)
      assert.equal(paused.status, 202)
      assert.deepInclude(paused.body, { paused: true, next_run: null })
      assert.match(paused.body.paused_at, /^\d{4}-.*Z$/)
      const again = yield* post(ask, `${path}/pause`)
      assert.deepEqual([again.status, again.body], [202, paused.body])
      assert.deepEqual((yield* get(ask, path)).body, paused.body)
      const resumed = yield* post(ask, `${path}/resume`)
      assert.equal(resumed.status, 202)
      assert.deepInclude(resumed.body, { paused: false, paused_at: null })
      assert.isString(resumed.body.next_run)
      assert.equal((yield* post(ask, `${path}/resume`)).status, 202)
    }),
  )
})

describe("/v1/admin/reconciliation", () => {
  const path = "/v1/admin/reconciliation"
  served("200: its loops, its findings, its last run and its next run", (ask) =>
    Effect.gen(function* () {
      const loops = ["manila_polling", "orphan_sweep", "rebuild_from_repository"]
      assert.deepEqual((yield* get(ask, path)).body, {
        loops,
        status: "idle",
        last_run_at: null,
        next_run_at: null,
        drift: [],
        drift_count: 0,
      })
      const at = "2026-11-20T12:00:00.000Z"
      yield* tell(address(Reconciliation, "main", StartReconciliation.make({ at })))
      const next_run_at = "2026-11-20T12:05:00.000Z"
      const running = (yield* get(ask, path)).body
      assert.deepInclude(running, { status: "running", last_run_at: at, next_run_at })
      const drift = [
        { loop: "manila_polling", kind: "share_gone", subject: share_a, detail: "It is gone." },
      ] as const
      const finish = FinishReconciliation.make({ drift, drift_count: 4 })
      yield* tell(address(Reconciliation, "main", finish))
      const found = { status: "idle", drift, drift_count: 4, last_run_at: at, next_run_at }
      assert.deepInclude((yield* get(ask, path)).body, found)
    }),
  )
  served("202: triggered, also twice", (ask) =>
    Effect.gen(function* () {
      const { status, body } = yield* post(ask, `${path}/trigger`)
      assert.deepEqual([status, body], [202, { status: "triggered" }])
      assert.equal((yield* post(ask, `${path}/trigger`)).status, 202)
    }),
  )
})

describe("GET /v1/admin/system/health", () => {
  served("200: the conductor works", (ask) =>
    Effect.gen(function* () {
      const { status, body } = yield* get(ask, "/v1/admin/system/health")
      assert.deepEqual([status, body], [200, { status: "healthy" }])
    }),
  )
  served("503: it does not, with the reason", (ask) =>
    Effect.gen(function* () {
      ;(yield* World).conductor = "has no lease"
      const answer = yield* get(ask, "/v1/admin/system/health")
      isRefused(answer, 503, "svc.backend_unavailable", "has no lease")
    }),
  )
})

describe("GET /v1/service_info", () => {
  served("200: without a token, or with a wrong one", (ask) =>
    Effect.gen(function* () {
      const wanted = {
        service_user: { id: "user-svc", name: "almanac" },
        worker_project: { id: "project-workers", name: "workers" },
      }
      for (const token of ["", "wrong", "tenant"]) {
        const { status, body } = yield* ask("GET", "/v1/service_info", undefined, { token })
        assert.deepEqual([status, body], [200, wanted])
      }
    }),
  )
})

describe("/v1/admin/domains/{domain_id}", () => {
  const path = `/v1/admin/domains/${domain_id}`
  const patch = (ask: Client, body: object, at = path) => ask("PATCH", at, body, admin)
  served("202: the requested settings, which wait for the next tick", (ask) =>
    Effect.gen(function* () {
      const fields = { min_workers: 2, max_workers: 5, quotas: { targets: 3 } }
      const { status, body } = yield* patch(ask, fields)
      assert.equal(status, 202)
      assert.deepEqual(body, {
        id: domain_id,
        ...fields,
        worker_boot_image: null,
        pending: true,
        applied_at: null,
        created_at: body.created_at,
        updated_at: body.created_at,
      })
      assert.deepEqual((yield* get(ask, path)).body, body)
      yield* tell(address(Domain, domain_id, ApplyDomain.make({})))
      const applied = (yield* get(ask, path)).body
      assert.deepInclude(applied, { ...fields, pending: false })
      assert.isString(applied.applied_at)
      const back = yield* patch(ask, { min_workers: null, worker_boot_image: "worker-2" })
      assert.deepInclude(back.body, {
        min_workers: null,
        max_workers: 5,
        worker_boot_image: "worker-2",
        pending: true,
      })
    }),
  )
  for (const [what, body] of [
    ["an unknown field", { colour: 1 }],
    ["an unknown quota", { quotas: { shares: 1 } }],
    ["a negative quota", { quotas: { targets: -1 } }],
    ["workers as a text", { min_workers: "2" }],
    ["a blank image", { worker_boot_image: " " }],
    ["an image that does not exist", { worker_boot_image: "no-such" }],
  ] as const) {
    served(`400: ${what}`, (ask) =>
      Effect.gen(function* () {
        isRefused(yield* patch(ask, body), 400, "svc.validation_error")
        isRefused(yield* get(ask, path), 404, "svc.not_found")
      }),
    )
  }
  const refusals: ReadonlyArray<readonly [string, ReadonlyArray<object>, object, string]> = [
    ["than the most of the same change", [], { min_workers: 3, max_workers: 2 }, "3, must"],
    [
      "than the most that was set before",
      [{ max_workers: 2 }],
      { min_workers: 3 },
      "max_workers, 2",
    ],
    ["than the configuration's most", [], { min_workers: 11 }, "10 of conductor.max_workers"],
    [
      "when the maximum is reset",
      [{ min_workers: 11, max_workers: 12 }],
      { max_workers: null },
      "11",
    ],
  ]
  for (const [what, before, body, detail] of refusals) {
    served(`400: more workers at least ${what}`, (ask) =>
      Effect.gen(function* () {
        for (const one of before) assert.equal((yield* patch(ask, one)).status, 202)
        const known = yield* get(ask, path)
        const answer = yield* patch(ask, body)
        isRefused(answer, 400, "svc.validation_error", detail)
        assert.deepEqual((yield* get(ask, path)).text, known.text)
      }),
    )
  }
  served("400: a maximum of 0 in the default pool, below the configured minimum", (ask) =>
    Effect.gen(function* () {
      const at = "/v1/admin/domains/default"
      const answer = yield* patch(ask, { max_workers: 0 }, at)
      isRefused(answer, 400, "svc.validation_error", "1 of conductor.min_workers")
      assert.equal((yield* patch(ask, { min_workers: 0, max_workers: 0 }, at)).status, 202)
      assert.equal((yield* patch(ask, { quotas: { targets: 1 } }, at)).status, 202)
    }),
  )
  served("400: an invalid id; 404: a domain without settings", (ask) =>
    Effect.gen(function* () {
      isRefused(yield* patch(ask, {}, "/v1/admin/domains/a.b"), 400, "svc.validation_error")
      isRefused(yield* get(ask, "/v1/admin/domains/other"), 404, "svc.not_found")
    }),
  )
  served("its quotas apply to its projects from the next tick", (ask) =>
    Effect.gen(function* () {
      yield* patch(ask, { quotas: { targets: 1, policies: 0, backups: 0 } })
      yield* made(ask, "/v1/targets", bucket)
      const { target } = yield* made(ask, "/v1/targets", bucket)
      yield* tell(address(Domain, domain_id, ApplyDomain.make({})))
      const refused = (path: string, body: object) =>
        Effect.map(ask("POST", path, body), (answer) =>
          isRefused(answer, 403, "svc.quota_exceeded"),
        )
      yield* refused("/v1/targets", bucket)
      yield* refused("/v1/policies", policyOf(target.id))
      yield* refused("/v1/backups", { share_id: share_a, target_id: target.id })
      yield* patch(ask, { quotas: { targets: 9 } })
      yield* refused("/v1/targets", bucket)
      yield* tell(address(Domain, domain_id, ApplyDomain.make({})))
      yield* made(ask, "/v1/targets", bucket)
      yield* made(ask, "/v1/policies", policyOf(target.id))
    }),
  )
})
