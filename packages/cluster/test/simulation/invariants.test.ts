/** Each invariant of the simulated cluster, on disks that violate it. */
import assert from "node:assert/strict"
import { blake3 } from "@napi-rs/blake-hash"
import { describe, it } from "vitest"
import { store_origin } from "#actors/blob-storage/ports/origin.ts"
import type { ReplicationPolicy } from "#schemas/blob-storage/blob.ts"
import { nodes_needed } from "#schemas/blob-storage/replication.ts"
import { copyBytes } from "#volume"
import { checkNow, deviationsOf } from "./invariants.ts"
import { tableOf } from "./membership.ts"
import { makeContent, makeModel } from "./model.ts"
import { naive } from "./naive.ts"
import { makeCluster } from "./node.ts"
import { makeWorld } from "./world.ts"

const names = ["n01", "n02", "n03", "n04", "n05", "n06", "n07"]
const made_at = 10n
const size = 100

/** Seven idle nodes, and one blob that was put on the first one and acknowledged. */
const makeStoredBlob = (policy: ReplicationPolicy) => {
  const world = makeWorld(1)
  const weights = new Map(names.map((name) => [name, 1n]))
  const cluster = makeCluster(world, weights, naive())
  for (const name of names) cluster.membership.join(name, 1n)
  const content = makeContent(world, { at: 1, size, policy })
  const model = makeModel(world, [content])
  const [known] = model.blobs
  assert(known !== undefined)
  model.endPut(model.beginPut(known, "n01"), made_at)
  const table = tableOf(cluster.membership.current())
  const owners = table.ownersOf(table.partitionOf(content.id), nodes_needed[policy])
  const others = names.filter((name) => !owners.includes(name))
  const disk = (name: string | undefined) => {
    const found = cluster.nodeOf(name ?? "")?.disk()
    assert(found !== undefined)
    return found
  }
  /** A whole copy, or a shard of EC42. */
  const storeOn = async (name: string | undefined, index?: number) => {
    const shard = index === undefined ? undefined : { index, data_shards: 4 }
    const checksum = blake3(content.bytes).toString("hex")
    const order = {
      id: content.id,
      checksum,
      size,
      policy,
      labels: {},
      created_at: made_at,
      shard,
      origin: store_origin,
    }
    const bytes = copyBytes(size, shard)
    const receiving = disk(name).receive(order, bytes)
    await receiving.write(shard === undefined ? content.bytes : new Uint8Array(bytes))
    await receiving.finish(made_at)
  }
  const violation = () => {
    checkNow(cluster, model)
    return world.violation() ?? ""
  }
  const left = () => deviationsOf(cluster, model).join("; ")
  return { content, model, known, owners, others, disk, storeOn, violation, left }
}

describe("an invariant of the simulated cluster", () => {
  it("holds if all copies are on their owners", async () => {
    const { owners, storeOn, violation, left } = makeStoredBlob("REPLICATION_POLICY_REPLICA3")
    for (const owner of owners) await storeOn(owner)
    assert.deepEqual([violation(), left()], ["", ""])
  })
  it("detects a blob without any copy", () => {
    const { violation, left } = makeStoredBlob("REPLICATION_POLICY_REPLICA2")
    assert.match(violation(), /is lost/)
    assert.match(left(), /is nowhere/)
  })
  it("detects that the last copy is corrupt", async () => {
    const { owners, storeOn, disk, content, violation, left } =
      makeStoredBlob("REPLICATION_POLICY_NONE")
    await storeOn(owners[0])
    assert.equal(violation(), "")
    disk(owners[0]).corrupt(content.id)
    assert.match(left(), /rotten/)
    assert.match(violation(), /is lost/)
  })
  it("detects a missing copy on an owner, and a misplaced copy", async () => {
    const { owners, others, storeOn, violation, left } = makeStoredBlob(
      "REPLICATION_POLICY_REPLICA2",
    )
    await storeOn(owners[0])
    assert.equal(left().split(": ").at(-1), `missing at ${owners[1]}`)
    await storeOn(owners[1])
    await storeOn(others[0])
    assert.match(left(), new RegExp(`${others[0]} whole has no owner`))
    assert.equal(violation(), "")
  })
  it("detects missing and duplicate shards", async () => {
    const { owners, storeOn, violation, left } = makeStoredBlob("REPLICATION_POLICY_EC42")
    for (const [index, owner] of owners.entries()) await storeOn(owner, Math.min(index, 4))
    assert.match(left(), /a shard twice/)
    assert.equal(violation(), "")
    const few = makeStoredBlob("REPLICATION_POLICY_EC42")
    for (const [index, owner] of few.owners.entries()) await few.storeOn(owner, Math.min(index, 2))
    assert.match(few.violation(), /is lost/)
  })
  it("detects copies after a cluster-wide deletion, and after a local one", async () => {
    const { owners, storeOn, model, known, violation, left } = makeStoredBlob(
      "REPLICATION_POLICY_REPLICA2",
    )
    for (const owner of owners) await storeOn(owner)
    const wide = model.beginDeletion(known, "n02", made_at)
    model.endDeletion(known, wide, true)
    assert.match(left(), /was deleted and exists/)
    assert.equal(violation(), "")
    const owner = owners[0] ?? ""
    const local = model.beginLocalDeletion(known, owner, made_at)
    model.endDeletion(known, local, true)
    assert.match(violation(), new RegExp(`is back on ${owner}`))
  })
})
