/** Contract of every LiveNodes adapter. */
import { assert } from "@effect/vitest"
import { Effect } from "effect"
import { LiveNodes } from "#actors/blob-storage/ports/live-nodes.ts"
import { NodeId } from "#schemas/blob-storage/node.ts"

const node_id = NodeId.make("node-1")

/** The tests, by title. */
export const promises: Readonly<Record<string, Effect.Effect<void, never, LiveNodes>>> = {
  "has no values of an unknown node": Effect.gen(function* () {
    const { find } = yield* LiveNodes
    assert.isUndefined(find("nobody"))
  }),

  "knows what a node said last, and when": Effect.gen(function* () {
    const { publish, find } = yield* LiveNodes
    const before = Date.now()
    yield* publish({ node_id, used_bytes: 1n, blob_count: 1n })
    const largest = 2n ** 64n - 1n
    yield* publish({ node_id, used_bytes: largest, blob_count: 2n })
    const { received_at = 0, ...output } = find(node_id) ?? {}
    assert.deepEqual(output, { node_id, used_bytes: largest, blob_count: 2n })
    assert.isAtLeast(received_at, before)
    assert.isAtMost(received_at, Date.now())
  }),

  "knows how far its repair was, where it said so last": Effect.gen(function* () {
    const { publish, find } = yield* LiveNodes
    const largest = 2n ** 64n - 1n
    const progress = {
      pending_migrations: largest,
      bytes_moved: largest,
      repairs: largest,
      replication_failures: largest,
      under_replicated: 1n,
    }
    yield* publish({ node_id, used_bytes: 1n, blob_count: 1n, progress })
    assert.deepEqual(find(node_id)?.progress, progress)
    yield* publish({ node_id, used_bytes: 1n, blob_count: 1n })
    assert.isUndefined(find(node_id)?.progress)
  }),

  "keeps nodes apart": Effect.gen(function* () {
    const { publish, find } = yield* LiveNodes
    yield* publish({ node_id, used_bytes: 1n, blob_count: 1n })
    yield* publish({ node_id: NodeId.make("node-2"), used_bytes: 2n, blob_count: 2n })
    assert.equal(find("node-1")?.used_bytes, 1n)
    assert.equal(find("node-2")?.used_bytes, 2n)
  }),
}
