import { writeFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import Sqlite from "better-sqlite3"
import { Effect } from "effect"
import { makeLiveNodes } from "#actors/blob-storage/ports/live-nodes.ts"
import { sqliteLiveNodes } from "#adapters/blob-storage/sqlite-live-nodes.ts"
import { nodes_max } from "#schemas/blob-storage/cluster.ts"
import { NodeId } from "#schemas/blob-storage/node.ts"
import { temporaryFolder } from "../../world/programs/nats.ts"

/** The nodes that successive processes read from the same file. */
const life = (path: string, node_ids: ReadonlyArray<string>) =>
  Effect.scoped(
    Effect.gen(function* () {
      const { record, find } = makeLiveNodes(yield* sqliteLiveNodes(path))
      for (const id of node_ids) {
        yield* record({ node_id: NodeId.make(id), used_bytes: 2n ** 64n - 1n, blob_count: 7n })
      }
      return find
    }),
  )

describe("live values in SQLite", () => {
  it.live("are there again after a restart", () =>
    Effect.gen(function* () {
      const path = join(yield* temporaryFolder, "live.sqlite")
      yield* life(path, ["a"])
      const find = yield* life(path, [])
      assert.equal(find("a")?.used_bytes, 2n ** 64n - 1n)
      assert.equal(find("a")?.blob_count, 7n)
      assert.isAbove(find("a")?.received_at ?? 0, 0)
      assert.isUndefined(find("b"))
    }).pipe(Effect.scoped),
  )

  it.live("are forgotten, longest silent first, beyond twice the nodes of a cluster", () =>
    Effect.gen(function* () {
      const path = join(yield* temporaryFolder, "live.sqlite")
      yield* life(path, ["first"])
      yield* life(
        path,
        Array.from({ length: 2 * nodes_max }, (_, i) => `node-${i}`),
      )
      const find = yield* life(path, [])
      assert.isUndefined(find("first"))
      assert.isDefined(find("node-0"))
    }).pipe(Effect.scoped),
  )

  it.live("start from scratch if the file is no longer a database", () =>
    Effect.gen(function* () {
      const path = join(yield* temporaryFolder, "live.sqlite")
      yield* life(path, ["a"])
      writeFileSync(path, "cut off by a power cut".repeat(1000))
      yield* life(path, ["b"])
      const find = yield* life(path, [])
      assert.isUndefined(find("a"))
      assert.isDefined(find("b"))
    }).pipe(Effect.scoped),
  )

  it.live("are heard also while the file takes nothing", () =>
    Effect.gen(function* () {
      const path = join(yield* temporaryFolder, "live.sqlite")
      const { record, find } = makeLiveNodes(yield* sqliteLiveNodes(path))
      const other = new Sqlite(path)
      other.exec("drop table live_blob_storage_node")
      other.close()
      yield* record({ node_id: NodeId.make("a"), used_bytes: 1n, blob_count: 1n })
      assert.equal(find("a")?.used_bytes, 1n)
    }).pipe(Effect.scoped),
  )
})
