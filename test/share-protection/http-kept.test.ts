import { assert, describe } from "@effect/vitest"
import { Effect } from "effect"
import { LiveWorkers } from "#actors/share-protection/ports/live-workers.ts"
import { worker_id } from "./http-course.ts"
import { admin, backedUp, made } from "./http-given.ts"
import { compared } from "./http-kept.ts"
import { type Client, served } from "./served.ts"

/** How many of these are given from what was kept; `besideKept` holds each to the plain one. */
const keptOf = (ask: Client, paths: ReadonlyArray<string>) =>
  Effect.gen(function* () {
    const { count } = compared
    for (const path of paths) {
      const asked = path.includes("/admin/") ? admin : {}
      assert.equal((yield* ask("GET", path, undefined, asked)).status, 200, path)
    }
    return compared.count - count
  })

describe("what is polled", () => {
  served("is kept until anything shows that was not there, and heartbeats count", (ask) =>
    Effect.gen(function* () {
      const { target_id, policy_id, backup_id, job_id } = yield* backedUp(ask, { policy: true })
      const { restore } = yield* made(ask, "/v1/restores", { backup_id })
      const paths = [
        "/v1/jobs",
        `/v1/jobs/${job_id}`,
        "/v1/admin/jobs",
        "/v1/jobs?state=available",
        "/v1/backups",
        `/v1/backups/${backup_id}`,
        "/v1/restores",
        `/v1/restores/${restore.id}`,
        "/v1/targets",
        `/v1/targets/${target_id}`,
        "/v1/admin/targets",
        "/v1/usage",
        "/v1/policies",
        `/v1/policies/${policy_id}`,
        "/v1/admin/workers",
        "/v1/admin/rollouts",
      ]
      assert.equal(yield* keptOf(ask, paths), 0)
      assert.equal(yield* keptOf(ask, paths), paths.length)
      yield* ask("PATCH", `/v1/policies/${policy_id}`, { name: "Other" })
      assert.equal(yield* keptOf(ask, paths), 0)
      assert.equal(yield* keptOf(ask, paths), paths.length)
      yield* (yield* LiveWorkers).beat({ worker_id, jobs: [] })
      assert.equal(yield* keptOf(ask, paths), 0)
    }),
  )

  served("is not kept where another service is asked", (ask) =>
    Effect.gen(function* () {
      const paths = ["/v1/admin/coverage", "/v1/admin/scheduling", "/v1/service_info"]
      yield* keptOf(ask, paths)
      assert.equal(yield* keptOf(ask, paths), 0)
    }),
  )
})
