/** Manual compaction over HTTP. */
import { assert, describe } from "@effect/vitest"
import { Effect } from "effect"
import { served } from "../../world/blob-storage/cluster-served.ts"

describe("compact", () => {
  served("answers how far the node's own compaction is, with exact integers", (ask) =>
    Effect.gen(function* () {
      const { status, text, body } = yield* ask("POST", "/v1/cluster/compact")
      assert.deepEqual([status, body.node_id, body.is_done], [200, "own", true])
      assert.include(text, `"given_back_bytes":${2n ** 60n + 1n}`)
    }),
  )
})
