import { assert, describe } from "@effect/vitest"
import { Effect, Struct } from "effect"
import { expireBackups, requestRestore } from "#actors/share-protection/requests.ts"
import { Log } from "#events/log.ts"
import { BackupId, JobId, RestoreId, TargetId } from "#schemas/share-protection/id.ts"
import {
  admin,
  available,
  backedUp,
  bucket,
  bucketOf,
  made,
  policyOf,
  template,
  tenant_b,
  unknown_id,
} from "../../world/share-protection/http/given.ts"
import {
  project_a,
  share_a,
  share_a2,
  share_b,
  trust_b,
} from "../../world/share-protection/http/ports.ts"
import { type Client, isRefused, served } from "../../world/share-protection/http/served.ts"
import { begin, fail, run, tell } from "../../world/share-protection/http/transitions.ts"
import { snapshot, uuid } from "../../world/share-protection/samples.ts"

const expire = (target_id: string, ...ids: ReadonlyArray<string>) => {
  const { engine_snapshot_id } = snapshot
  const backups = ids.map((id) => ({ backup_id: BackupId.make(id), engine_snapshot_id }))
  const going = { project_id: project_a, target_id: TargetId.make(target_id), backups }
  return tell(...expireBackups({ ...going, job_id: JobId.make(uuid(77)) }))
}

const idsOf = (ask: Client, query = "") =>
  Effect.map(ask("GET", `/v1/backups${query}`), ({ body }) =>
    body.backups.map(({ id }: { readonly id: string }) => id),
  )

/** The first event of a stream's last commit. */
const eventOf = (stream: string) =>
  Effect.gen(function* () {
    const last = yield* (yield* Log).load(`share-protection.${stream}`)
    return last?.commit.events[0] ?? {}
  })

describe("POST /v1/backups", () => {
  served("202: a backup and its job", (ask) =>
    Effect.gen(function* () {
      const target_id = yield* available(ask)
      const fields = { share_id: share_a, target_id }
      const { status, headers, body } = yield* ask("POST", "/v1/backups", fields)
      assert.equal(status, 202)
      const { backup, job } = body
      assert.include(backup, {
        share_id: share_a,
        target_id,
        policy_id: null,
        status: "creating",
        engine_snapshot_id: null,
        crash_consistent: false,
        project_id: project_a,
        job_id: job.id,
        protected_until: null,
        reason: null,
        taken_at: null,
      })
      assert.include(job, {
        job_type: "backup",
        state: "queued",
        resource_type: "backup",
        resource_id: backup.id,
        target_id,
        share_id: share_a,
        backup_id: backup.id,
      })
      assert.equal(headers.get("location"), `/v1/jobs/${job.id}`)
      assert.deepEqual((yield* ask("GET", `/v1/backups/${backup.id}`)).body, backup)
      yield* run(job.id, 2)
      const done = (yield* ask("GET", `/v1/backups/${backup.id}`)).body
      assert.include(done, {
        status: "available",
        crash_consistent: true,
        bytes: 1000,
        files: 10,
        engine_snapshot_id: snapshot.engine_snapshot_id,
      })
    }),
  )
  served("202: of a policy, to its target, with its retries", (ask) =>
    Effect.gen(function* () {
      const target_id = yield* available(ask)
      const policy = { ...policyOf(target_id), enabled: false, max_retries: 2 }
      const { id: policy_id } = yield* made(ask, "/v1/policies", policy)
      const one = { share_id: share_a, policy_id, crash_consistent: true }
      const { backup, job } = yield* made(ask, "/v1/backups", one)
      assert.include(backup, { policy_id, target_id })
      assert.include(yield* eventOf(`backup.${backup.id}`), { crash_consistent_wanted: true })
      assert.include(yield* eventOf(`job.${job.id}`), { max_retries: 2 })
      yield* run(job.id, 2)
      const two = yield* made(ask, "/v1/backups", { ...one, target_id, crash_consistent: null })
      assert.include(two.backup, { policy_id, target_id })
    }),
  )
  served("202: for a target that is not enrolled yet; the job waits", (ask) =>
    Effect.gen(function* () {
      const { target } = yield* made(ask, "/v1/targets", bucket)
      const { backup } = yield* made(ask, "/v1/backups", {
        share_id: share_a,
        target_id: target.id,
        crash_consistent: false,
      })
      assert.equal(backup.status, "creating")
    }),
  )
  const wrong: ReadonlyArray<readonly [string, object, string]> = [
    ["without a share", { target_id: unknown_id }, "body.share_id"],
    ["without a target or policy", { share_id: share_a }, "target_id"],
    ["with an unknown field", { share_id: share_a, target_id: unknown_id, x: 1 }, "body.x"],
    ["with a share that is no id", { share_id: "s", target_id: unknown_id }, "body.share_id"],
    [
      "with a wish that is no boolean",
      { share_id: share_a, target_id: unknown_id, crash_consistent: "yes" },
      "body.crash_consistent",
    ],
    ["of an unknown share", { share_id: uuid(99), target_id: unknown_id }, "body.share_id"],
    ["of another project's share", { share_id: share_b, target_id: unknown_id }, "body.share_id"],
    ["to an unknown target", { share_id: share_a, target_id: unknown_id }, "body.target_id"],
    ["of an unknown policy", { share_id: share_a, policy_id: unknown_id }, "body.policy_id"],
  ]
  for (const [how, body, detail] of wrong) {
    served(`400: a body ${how}`, (ask) =>
      Effect.gen(function* () {
        isRefused(yield* ask("POST", "/v1/backups", body), 400, "svc.validation_error", detail)
      }),
    )
  }
  served("400: another project's target, another share's policy, another target", (ask) =>
    Effect.gen(function* () {
      const theirs = yield* made(ask, "/v1/targets", { ...bucket, trust_id: trust_b }, "tenant_b")
      const target_id = yield* available(ask)
      const other_id = (yield* made(ask, "/v1/targets", bucket)).target.id
      const { id: policy_id } = yield* made(ask, "/v1/policies", policyOf(target_id))
      const wrong: ReadonlyArray<readonly [object, string]> = [
        [{ share_id: share_a, target_id: theirs.target.id }, "body.target_id"],
        [{ share_id: share_a2, policy_id }, "body.policy_id"],
        [{ share_id: share_a, policy_id, target_id: other_id }, "body.target_id"],
      ]
      for (const [body, detail] of wrong) {
        isRefused(yield* ask("POST", "/v1/backups", body), 400, "svc.validation_error", detail)
      }
      assert.deepEqual(yield* idsOf(ask), [])
    }),
  )
  served(
    "403: the quota is used up; expired backups do not count",
    (ask) =>
      Effect.gen(function* () {
        const { target_id, backup_id } = yield* backedUp(ask)
        const body = { share_id: share_a, target_id }
        isRefused(yield* ask("POST", "/v1/backups", body), 403, "svc.quota_exceeded")
        yield* expire(target_id, backup_id)
        assert.equal((yield* ask("POST", "/v1/backups", body)).status, 202)
      }),
    { settings: { quota: { backups: 1 } } },
  )
  served("409: a backup of the share is in progress", (ask) =>
    Effect.gen(function* () {
      const target_id = yield* available(ask)
      const body = { share_id: share_a, target_id }
      const { backup } = yield* made(ask, "/v1/backups", body)
      isRefused(yield* ask("POST", "/v1/backups", body), 409, "svc.conflict", backup.id)
      assert.deepEqual(yield* idsOf(ask), [backup.id])
    }),
  )
  served("409: the target's format is being upgraded", (ask) =>
    Effect.gen(function* () {
      const target_id = yield* available(ask)
      const path = `/v1/admin/targets/${target_id}/repo-format-upgrade`
      const { job } = (yield* ask("POST", path, undefined, admin)).body
      const answer = yield* ask("POST", "/v1/backups", { share_id: share_a, target_id })
      isRefused(answer, 409, "svc.repository_locked", job.id)
      assert.deepEqual(yield* idsOf(ask), [])
    }),
  )
})

describe("GET /v1/backups", () => {
  served("200: newest first, expired ones only on request", (ask) =>
    Effect.gen(function* () {
      const { target_id, backup_id: first } = yield* backedUp(ask)
      const body = { share_id: share_a, target_id }
      const second = yield* made(ask, "/v1/backups", body)
      yield* run(second.job.id, 3)
      const third = (yield* made(ask, "/v1/backups", body)).backup.id
      const two = second.backup.id
      assert.deepEqual(yield* idsOf(ask), [third, two, first])
      yield* expire(target_id, first)
      assert.deepEqual(yield* idsOf(ask), [third, two])
      assert.deepEqual(yield* idsOf(ask, "?include_expired=true"), [third, two, first])
      assert.deepEqual(yield* idsOf(ask, "?include_expired=True"), [third, two, first])
      assert.deepEqual(yield* idsOf(ask, "?include_expired=false"), [third, two])
      assert.deepEqual(yield* idsOf(ask, "?status=expired"), [first])
      assert.deepEqual(yield* idsOf(ask, "?status=available"), [two])
      assert.include((yield* ask("GET", `/v1/backups/${first}`)).body, { status: "expired" })
    }),
  )
  served("200: those of a share, a target, a policy", (ask) =>
    Effect.gen(function* () {
      const { target_id, policy_id, backup_id } = yield* backedUp(ask, { policy: true })
      const other = yield* made(ask, "/v1/backups", { share_id: share_a2, target_id })
      const id = other.backup.id
      assert.deepEqual(yield* idsOf(ask, `?share_id=${share_a2}`), [id])
      assert.deepEqual(yield* idsOf(ask, `?policy_id=${policy_id}`), [backup_id])
      assert.deepEqual(yield* idsOf(ask, `?target_id=${target_id}`), [id, backup_id])
      assert.deepEqual(yield* idsOf(ask, `?target_id=${unknown_id}`), [])
      const theirs = yield* ask("GET", "/v1/backups", undefined, tenant_b)
      assert.deepEqual(theirs.body.backups, [])
    }),
  )
  for (const query of ["status=new", "include_expired=maybe", "share_id=x", "policy_id=x"]) {
    served(`400: ${query}`, (ask) =>
      Effect.gen(function* () {
        isRefused(yield* ask("GET", `/v1/backups?${query}`), 400, "svc.validation_error")
      }),
    )
  }
})

describe("GET /v1/backups/{id}", () => {
  served("404: another project's, or none", (ask) =>
    Effect.gen(function* () {
      const { backup_id } = yield* backedUp(ask)
      const path = `/v1/backups/${backup_id}`
      isRefused(yield* ask("GET", path, undefined, tenant_b), 404, "svc.not_found")
      isRefused(yield* ask("GET", `/v1/backups/${unknown_id}`), 404, "svc.not_found")
    }),
  )
  served("shows the reason of its failure", (ask) =>
    Effect.gen(function* () {
      const target_id = yield* available(ask)
      const { backup, job } = yield* made(ask, "/v1/backups", { share_id: share_a, target_id })
      yield* fail(job.id, 2)
      const { body } = yield* ask("GET", `/v1/backups/${backup.id}`)
      assert.include(body, { status: "error", reason: "The engine exited with 1." })
    }),
  )
})

describe("DELETE /v1/backups/{id}", () => {
  served("204: deletes the record, and a job forgets its snapshot", (ask) =>
    Effect.gen(function* () {
      const { target_id, backup_id } = yield* backedUp(ask)
      const { status, text } = yield* ask("DELETE", `/v1/backups/${backup_id}`)
      assert.deepEqual([status, text], [204, ""])
      isRefused(yield* ask("GET", `/v1/backups/${backup_id}`), 404, "svc.not_found")
      assert.deepEqual(yield* idsOf(ask, "?include_expired=true"), [])
      const [job] = (yield* ask("GET", "/v1/jobs")).body.jobs
      assert.include(job, { job_type: "retention", state: "queued", resource_id: target_id })
      isRefused(yield* ask("DELETE", `/v1/backups/${backup_id}`), 404, "svc.not_found")
      assert.equal((yield* ask("DELETE", `/v1/targets/${target_id}`)).status, 204)
    }),
  )
  served("204: an expired record, and one in error, without a job", (ask) =>
    Effect.gen(function* () {
      const { target_id, backup_id } = yield* backedUp(ask)
      const { backup, job } = yield* made(ask, "/v1/backups", { share_id: share_a, target_id })
      yield* fail(job.id, 3)
      yield* expire(target_id, backup_id)
      const before = (yield* ask("GET", "/v1/jobs")).body.jobs.length
      assert.equal((yield* ask("DELETE", `/v1/backups/${backup_id}`)).status, 204)
      assert.equal((yield* ask("DELETE", `/v1/backups/${backup.id}`)).status, 204)
      assert.equal((yield* ask("GET", "/v1/jobs")).body.jobs.length, before)
      assert.equal((yield* ask("DELETE", `/v1/targets/${target_id}`)).status, 204)
    }),
  )
  served("409: in progress, in each of its states", (ask) =>
    Effect.gen(function* () {
      const target_id = yield* available(ask)
      const { backup, job } = yield* made(ask, "/v1/backups", { share_id: share_a, target_id })
      const path = `/v1/backups/${backup.id}`
      isRefused(yield* ask("DELETE", path), 409, "svc.conflict")
      yield* begin(job.id, 2)
      assert.equal((yield* ask("GET", path)).body.status, "running")
      isRefused(yield* ask("DELETE", path), 409, "svc.conflict")
    }),
  )
  served("409: its objects are locked, with the end of the lock", (ask) =>
    Effect.gen(function* () {
      const protected_until = "2999-01-01T00:00:00.000Z"
      const { backup_id } = yield* backedUp(ask, { snapshot: { protected_until } })
      const answer = yield* ask("DELETE", `/v1/backups/${backup_id}`)
      isRefused(answer, 409, "svc.conflict", `protected_until ${protected_until}`)
      assert.equal((yield* ask("GET", `/v1/backups/${backup_id}`)).body.status, "available")
    }),
  )
  served("204: the lock has expired", (ask) =>
    Effect.gen(function* () {
      const protected_until = "2020-01-01T00:00:00.000Z"
      const { backup_id } = yield* backedUp(ask, { snapshot: { protected_until } })
      assert.equal((yield* ask("DELETE", `/v1/backups/${backup_id}`)).status, 204)
    }),
  )
  served("409: a restore is reading it", (ask) =>
    Effect.gen(function* () {
      const { target_id, backup_id } = yield* backedUp(ask)
      yield* tell(
        ...requestRestore(RestoreId.make(uuid(81)), {
          project_id: project_a,
          backup_id: BackupId.make(backup_id),
          share_id: share_a,
          target_id: TargetId.make(target_id),
          mode: "new_share",
          sub_path: null,
          force: false,
          dry_run: false,
          plan_hash: null,
          job_id: JobId.make(uuid(82)),
        }),
      )
      isRefused(yield* ask("DELETE", `/v1/backups/${backup_id}`), 409, "svc.conflict")
    }),
  )
  served("404: another project's, which is unchanged", (ask) =>
    Effect.gen(function* () {
      const path = `/v1/backups/${(yield* backedUp(ask)).backup_id}`
      isRefused(yield* ask("DELETE", path, undefined, tenant_b), 404, "svc.not_found")
      assert.equal((yield* ask("GET", path)).status, 200)
    }),
  )
})

describe("backups in Shape B", () => {
  const rest = Struct.omit(policyOf(""), ["target_id"])
  /** A template, and a policy that refers to it. */
  const templated = Effect.fnUntraced(function* (ask: Client, bucket_scheme: string) {
    const { id } = yield* made(ask, "/v1/target-templates", { ...template, bucket_scheme }, "owner")
    const policy = yield* made(ask, "/v1/policies", { ...rest, target_template_id: id })
    return { template_id: String(id), body: { share_id: share_a, policy_id: policy.id } }
  })
  served(
    "202: of a policy, into the project's own bucket of its template",
    (ask) =>
      Effect.gen(function* () {
        const { template_id, body } = yield* templated(ask, "per_project")
        isRefused(yield* ask("POST", "/v1/backups", body), 409, "svc.conflict", "No bucket")
        const theirs = { ...bucketOf(template_id), project_id: "b".repeat(32), trust_id: trust_b }
        yield* made(ask, "/v1/targets", theirs, "owner")
        isRefused(yield* ask("POST", "/v1/backups", body), 409, "svc.conflict", "No bucket")
        const own = yield* made(ask, "/v1/targets", bucketOf(template_id), "owner")
        const answer = yield* ask("POST", "/v1/backups", body)
        assert.equal(answer.status, 202)
        assert.include(answer.body, { target_bucket_id: own.id, status: "creating" })
        assert.notProperty(answer.body, "target_id")
        assert.notProperty(answer.body, "job")
        assert.equal(answer.headers.get("location"), `/v1/jobs/${answer.body.job_id}`)
        const { body: all } = yield* ask("GET", `/v1/backups?target_bucket_id=${own.id}`)
        assert.deepEqual(all.items, [answer.body])
      }),
    { shape: "B" },
  )
  served(
    "202: into the bucket that the domain's projects share",
    (ask) =>
      Effect.gen(function* () {
        const { template_id, body } = yield* templated(ask, "shared")
        const bucket = Struct.omit(bucketOf(template_id), ["project_id"])
        const shared = yield* made(ask, "/v1/targets", bucket, "owner")
        const backup = yield* made(ask, "/v1/backups", body)
        assert.include(backup, { target_bucket_id: shared.id, project_id: project_a })
      }),
    { shape: "B" },
  )
  served(
    "400: without a policy, with a target, with an unknown policy",
    (ask) =>
      Effect.gen(function* () {
        const { body } = yield* templated(ask, "per_project")
        const wrong: ReadonlyArray<readonly [object, string]> = [
          [{ share_id: share_a }, "body.policy_id"],
          [{ ...body, target_id: unknown_id }, "body.target_id"],
          [{ ...body, policy_id: unknown_id }, "body.policy_id"],
          [{ ...body, share_id: share_a2 }, "body.policy_id"],
        ]
        for (const [body, detail] of wrong) {
          const answer = yield* ask("POST", "/v1/backups", body)
          isRefused(answer, 400, "svc.validation_error", detail)
        }
      }),
    { shape: "B" },
  )
})
