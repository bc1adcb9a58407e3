import { assert, describe, it } from "@effect/vitest"
import { Effect, Latch, Layer, Result } from "effect"
import { Commands } from "#actors/commands.ts"
import { host } from "#actors/host.ts"
import { Ledger, ledgerAfter } from "#actors/share-protection/ledger.ts"
import {
  type Batch,
  createTarget,
  definePolicy,
  deletePolicy,
  deleteTarget,
  requestBackup,
  requestRestore,
} from "#actors/share-protection/requests.ts"
import { TargetTemplate, targetTemplateAfter } from "#actors/share-protection/target-template.ts"
import { Log } from "#events/log.ts"
import { logMemory } from "#journal"
import { TargetId } from "#schemas/share-protection/id.ts"
import {
  backupNow,
  deployment,
  policyNow,
  restoreNow,
  send,
  targetNow,
} from "../../world/share-protection/deployment.ts"
import {
  bucket,
  create,
  createTemplate,
  limit,
  made,
  request,
  requestedBackup,
} from "../../world/share-protection/request-scenes.ts"
import {
  at,
  backup,
  backup_id,
  jobId,
  other_backup_id,
  other_policy_id,
  policy,
  project_id,
  restore,
  restore_id,
  share_id,
  snapshot,
  target,
  target_id,
  template,
  template_id,
  uuid,
} from "../../world/share-protection/samples.ts"

const ledgerNow = Effect.gen(function* () {
  const log = yield* Log
  const last = yield* log.load(`${Ledger.name}.${project_id}`)
  assert.isDefined(last)
  return yield* ledgerAfter(log, last)
})

const templateNow = Effect.gen(function* () {
  const log = yield* Log
  const last = yield* log.load(`${TargetTemplate.name}.${template_id}`)
  assert.isDefined(last)
  return yield* targetTemplateAfter(log, last)
})

/**
 * A log that delays writes until this many writers wait, so that all of them have already decided.
 */
const gated = Effect.fnUntraced(function* (writers: number) {
  const log = yield* Log
  const gate = yield* Latch.make()
  let waiting = 0
  return Log.of({
    ...log,
    append: (commits) => {
      waiting++
      const arrived = waiting === writers ? gate.open : Effect.void
      return arrived.pipe(Effect.andThen(gate.await), Effect.andThen(log.append(commits)))
    },
  })
})

/** Sends each batch through its own host, concurrently; returns each outcome. */
const race = Effect.fnUntraced(function* (...batches: ReadonlyArray<Batch>) {
  const log = yield* gated(batches.length)
  const sent = batches.map(
    Effect.fnUntraced(function* (batch, i) {
      const commands = yield* Effect.provide(Commands, Layer.fresh(host))
      return yield* commands.send({ command_id: `racer-${i}`, actor: "test", at }, ...batch)
    }),
  )
  const results = yield* Effect.all(sent.map(Effect.result), { concurrency: "unbounded" }).pipe(
    Effect.provideService(Log, log),
  )
  return results.map((result) => {
    if (Result.isSuccess(result)) return "done"
    return "code" in result.failure ? result.failure.code : result.failure._tag
  })
})

describe("concurrent requests", () => {
  it.live("define one policy of a share", () =>
    Effect.gen(function* () {
      yield* send(create)
      const came = yield* race(
        definePolicy(share_id, policy, limit),
        definePolicy(share_id, { ...policy, id: other_policy_id }, limit),
      )
      assert.deepEqual(came.toSorted(), ["done", "svc.conflict"])
      assert.equal((yield* ledgerNow).policies, 1)
      assert.equal((yield* targetNow).policies, 1)
    }).pipe(Effect.provide(deployment)),
  )

  it.live("start one backup of a share", () =>
    Effect.gen(function* () {
      yield* send(create)
      const came = yield* race(
        request,
        requestBackup({ ...requestedBackup, backup_id: other_backup_id, job_id: jobId(3) }, limit),
      )
      assert.deepEqual(came.toSorted(), ["done", "svc.conflict"])
      assert.equal((yield* ledgerNow).backups, 1)
      assert.equal((yield* targetNow).backups, 1)
    }).pipe(Effect.provide(deployment)),
  )

  it.live("do not exceed the quota", () =>
    Effect.gen(function* () {
      const came = yield* race(
        ...[1, 2, 3, 4].map((n) =>
          createTarget(TargetId.make(uuid(20 + n)), { ...target, job_id: jobId(n) }, limit),
        ),
      )
      const expected = ["done", "done", "svc.quota_exceeded", "svc.quota_exceeded"]
      assert.deepEqual(came.toSorted(), expected)
      assert.equal((yield* ledgerNow).targets, limit)
    }).pipe(Effect.provide(logMemory)),
  )

  it.live("either keep the target or leave no policy on it", () =>
    Effect.gen(function* () {
      yield* send(create)
      const came = yield* race(
        definePolicy(share_id, policy, limit),
        deleteTarget(target_id, { project_id, template_id: null }, []),
      )
      const { status, policies } = yield* targetNow
      const policy_first = ["done", "svc.target_has_dependents"]
      const target_first = ["svc.not_found", "done"]
      assert.deepEqual(came, status === "deleted" ? target_first : policy_first)
      assert.equal(policies, status === "deleted" ? 0 : 1)
      assert.equal((yield* ledgerNow).policies, policies)
    }).pipe(Effect.provide(deployment)),
  )

  it.effect("are idempotent under one command id", () =>
    Effect.gen(function* () {
      const commands = yield* Commands
      const origin = { command_id: "same", actor: "test", at }
      const first = yield* commands.send(origin, ...create)
      assert.isAtLeast(yield* commands.send(origin, ...create), first)
      assert.equal((yield* ledgerNow).targets, 1)
      assert.equal(yield* (yield* Log).head(""), first)
    }).pipe(Effect.provide(deployment)),
  )
})

describe("the log after requests", () => {
  it.effect("has the state of each aggregate", () =>
    Effect.gen(function* () {
      yield* send(createTemplate)
      yield* send(createTarget(target_id, bucket, limit))
      assert.deepEqual(yield* templateNow, {
        ...template,
        targets: 1,
        policies: 0,
        state: "present",
      })
      const counted = { targets: 1, policies: 0, backups: 0, templates: 0 }
      assert.deepEqual(yield* ledgerNow, { ...counted, state: "open" })
      const { status, upgrading, project_id, job_id } = yield* targetNow
      assert.deepEqual(
        { status, upgrading, project_id, job_id },
        {
          status: "pending",
          upgrading: false,
          project_id: target.project_id,
          job_id: target.job_id,
        },
      )
    }).pipe(Effect.provide(deployment)),
  )

  it.effect("has a policy, and then none after its deletion", () =>
    Effect.gen(function* () {
      yield* send(create)
      yield* send(definePolicy(share_id, policy, limit))
      yield* send(requestBackup({ ...requestedBackup, policy_id: null }, limit))
      assert.deepEqual(yield* policyNow, {
        policy,
        backup: { backup_id, policy_id: null },
        last_tick: null,
        state: "defined",
      })
      yield* send(deletePolicy(share_id, policy))
      assert.equal((yield* policyNow).state, "none")
      assert.equal((yield* ledgerNow).policies, 0)
    }).pipe(Effect.provide(deployment)),
  )

  it.effect("has a backup with its restores", () =>
    Effect.gen(function* () {
      yield* Effect.forEach(made(), send)
      yield* send(requestRestore(restore_id, { ...restore, job_id: jobId(3) }))
      const { state, restores, engine_snapshot_id, share_id } = yield* backupNow
      assert.deepEqual(
        { state, restores, engine_snapshot_id, share_id },
        {
          state: "available",
          restores: [restore_id],
          share_id: backup.share_id,
          engine_snapshot_id: snapshot.engine_snapshot_id,
        },
      )
      assert.deepEqual(yield* restoreNow, {
        ...restore,
        job_id: jobId(3),
        new_share_id: null,
        reason: null,
        state: "pending",
      })
      assert.equal((yield* targetNow).status, "available")
    }).pipe(Effect.provide(deployment)),
  )
})
