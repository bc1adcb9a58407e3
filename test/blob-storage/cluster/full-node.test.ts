/**
 * One full node among several. A node at its floor of free space rejects copies and shards as one
 * at its capacity does (free-space.test.ts of the volume); here it is an in-memory engine with a
 * limit.
 */
import assert from "node:assert/strict"
import { describe, it } from "vitest"
import type { ReplicationPolicy } from "#schemas/blob-storage/blob.ts"
import { makeRepairWorld } from "../../../packages/cluster/test/repair/world.ts"
import {
  faultIn,
  idOf,
  makeNodes,
  type Node,
  type Nodes,
  orderOf,
  read,
} from "../../../packages/cluster/test/replicas/nodes.ts"

const settle_s = 11
const roomy_bytes = 2 ** 30
const bytes = Buffer.from("one of many".repeat(1000))
const id = idOf(bytes)

const put = ({ until }: Nodes, node: Node | undefined, policy: ReplicationPolicy) =>
  until((node ?? assert.fail()).engine.put(orderOf(policy), [bytes], 1n))

const policies = [
  { policy: "REPLICATION_POLICY_REPLICA3", owners: 3, nodes: 5 },
  { policy: "REPLICATION_POLICY_EC42", owners: 6, nodes: 8 },
] as const

describe("a full node", () => {
  for (const { policy, owners: count, nodes } of policies) {
    it(`does not fail a put of ${policy} elsewhere, which says where it is durable`, async () => {
      const cluster = makeNodes(nodes)
      const { owners } = cluster.rolesOf(id, count)
      const [first, , full] = owners
      full?.local.limit(0)
      const { created, durable_on } = await put(cluster, first, policy)
      const others = owners.filter((owner) => owner !== full).map(({ node_id }) => node_id)
      assert.equal(created, true)
      assert.deepEqual(durable_on?.toSorted(), others.toSorted())
      assert.deepEqual(await cluster.holders(id), others.toSorted())
      // The missing copy is recorded as a hint for repair.
      assert.deepEqual(first?.hints, [{ id, why: "replication", nodes: [full?.node_id] }])
      for (const node of cluster.nodes) {
        assert((await cluster.until(read(node, id))).bytes.equals(bytes), node.node_id)
      }
    })
  }

  it("refuses a put that it is asked for as one without capacity, and stores nothing", async () => {
    const cluster = makeNodes(5)
    const { owners } = cluster.rolesOf(id, 3)
    owners[0]?.local.limit(0)
    const refused = faultIn(put(cluster, owners[0], "REPLICATION_POLICY_REPLICA3"))
    assert.equal(await refused, "BlobCapacityExceeded")
    assert.deepEqual(await cluster.holders(id), [])
  })

  it("is waited for by repair, which reports it, and gets its copies later", async () => {
    const cluster = makeRepairWorld(["a", "b", "c", "d"])
    const blobs = Array.from({ length: 8 }, (_, n) =>
      cluster.blob(`blob ${n}`, "REPLICATION_POLICY_REPLICA3"),
    )
    const { engine } = cluster.node("c")
    engine.limit(0)
    for (const blob of blobs) {
      const [giver = ""] = cluster.ownersOf(blob, 3).filter((name) => name !== "c")
      await cluster.give(giver, blob)
    }
    await cluster.sleep(settle_s)
    await cluster.sweepAll(3)
    const wanted = blobs.filter((blob) => cluster.ownersOf(blob, 3).includes("c"))
    assert(wanted.length > 0)
    for (const blob of blobs) {
      const owners = cluster.ownersOf(blob, 3)
      const able = owners.filter((name) => name !== "c")
      assert.deepEqual(await cluster.holders(blob), able.toSorted(), "all but the full node")
    }
    const failures = () =>
      ["a", "b", "d"].reduce((sum, name) => sum + cluster.node(name).repairs.progress().failures, 0)
    assert(failures() >= wanted.length, `${failures()} failures are reported`)
    engine.limit(roomy_bytes)
    await cluster.sleep(settle_s)
    await cluster.sweepAll(3)
    const before = failures()
    for (const blob of blobs) {
      assert.deepEqual(await cluster.holders(blob), cluster.ownersOf(blob, 3).toSorted())
    }
    await cluster.sweepAll()
    assert.equal(failures(), before)
  })
})
