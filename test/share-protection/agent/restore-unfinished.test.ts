import { existsSync, readdirSync } from "node:fs"
import { assert, describe } from "@effect/vitest"
import { Effect, Stream } from "effect"
import { retryJob } from "#actors/share-protection/jobs/transitions.ts"
import { EngineFailed } from "#actors/share-protection/ports/engine.ts"
import { Shares } from "#actors/share-protection/ports/shares.ts"
import { requestRestore } from "#actors/share-protection/requests.ts"
import { BackendUnavailable } from "#schemas/share-protection/rejection.ts"
import { readTree } from "../../world/folder.ts"
import {
  enrolledWith,
  inWorld,
  project_folder,
  ran,
  share_tree,
  worker,
} from "../../world/share-protection/agents.ts"
import {
  backup_job_id,
  factsOf,
  restore_job_id,
  restoreNow,
  send,
} from "../../world/share-protection/deployment.ts"
import { project_id, restore, restore_id, share_id } from "../../world/share-protection/samples.ts"

const away = new BackendUnavailable({ detail: "It does not answer." })
const broken = new EngineFailed({ detail: "The engine exited with 1.", wrote_nothing: false })

/** Requests a restore into a new share. */
const body = Effect.gen(function* () {
  yield* worker()
  yield* enrolledWith()
  yield* ran(backup_job_id)
  yield* send(requestRestore(restore_id, { ...restore, job_id: restore_job_id }))
})

describe("a restore into a new share", () => {
  inWorld("reports its unfinished share on failure, and continues with it on a retry", (world) =>
    Effect.gen(function* () {
      yield* body
      const before = readdirSync(`${world.root}/${project_id}`)
      world.instead.set("engine.restore", Effect.fail(broken))
      const { error } = yield* ran(restore_job_id)
      const { reason, new_share_id } = yield* restoreNow
      assert.match(reason ?? "", /The new share [0-9a-f-]{36} is incomplete; retrying the job/)
      assert.equal(error?.detail, reason)
      assert.isNull(new_share_id)
      const shares = yield* Stream.runCollect((yield* Shares).list)
      assert.deepEqual(
        shares.map(({ id }) => id),
        [share_id],
      )
      const [left] = readdirSync(`${world.root}/${project_id}`).filter((id) => !before.includes(id))
      assert.match(left ?? "", /\.unfinished$/)
      world.instead.clear()
      const facts = yield* factsOf(restore_job_id)
      yield* send(retryJob(facts, { automatic: false, policy_id: null }))
      assert.equal((yield* ran(restore_job_id)).state, "available")
      const id = (yield* restoreNow).new_share_id
      assert.deepEqual(yield* readTree(project_folder(world, String(id))), share_tree)
      assert.isFalse(existsSync(`${world.root}/${project_id}/${left}`))
    }),
  )

  inWorld("makes no new share if the bucket is unavailable", (world) =>
    Effect.gen(function* () {
      yield* body
      world.instead.set("buckets.reach", Effect.fail(away))
      assert.equal((yield* ran(restore_job_id)).state, "error")
      assert.notInclude(world.calls, "shares.create")
      assert.notInclude((yield* restoreNow).reason, "unfinished")
    }),
  )
})
