/**
 * The same bytes are put again while an earlier deletion has not reached all nodes, or with another
 * policy than that of the stored copies. Source: DECISIONS, document 1, same content again, delete
 * and replicas; decision 0125.
 */
import { describe, expect, it } from "vitest"
import type { HeldCopy } from "#actors/blob-storage/ports/node-engine.ts"
import type { BlobId, ReplicationPolicy } from "#schemas/blob-storage/blob.ts"
import { noise } from "../../../../test/contract/blob-storage/engine-bytes.ts"
import { isSingle } from "../../replicas/parts.ts"
import {
  faultIn,
  idOf,
  makeNodes,
  membersOf,
  type Node,
  type Nodes,
  orderOf,
  origin,
  read,
} from "./nodes.ts"

const bytes = noise(1, 4096)
const id = idOf(bytes)

const put = (nodes: Nodes, node: Node, policy: ReplicationPolicy, at: bigint) =>
  nodes.until(node.engine.put(orderOf(policy), [bytes], at))

const upload = async (nodes: Nodes, node: Node, policy: ReplicationPolicy, at: bigint) => {
  const session = node.engine.upload(orderOf(policy), undefined)
  await session.write(bytes.slice())
  return nodes.until(session.finish(at))
}

const copyAt = async ({ local }: Node, of: BlobId): Promise<HeldCopy | undefined> => {
  const [copy] = await local.copiesOf([of])
  return copy === undefined || copy.kind === "tombstone" ? undefined : copy
}

/** Sends a cluster-wide deletion to each of the nodes. */
const deleteOnAll = async (nodes: ReadonlyArray<Node>, deleted_at: bigint) => {
  for (const { local } of nodes) await local.deleteClusterWide(id, origin, deleted_at)
}

const rolesOf = (nodes: Nodes, count: number) => {
  const { owners, others } = nodes.rolesOf(id, count)
  const [here, there] = owners
  const [other] = others
  if (here === undefined || there === undefined || other === undefined) throw new Error("too few")
  return { owners, here, there, other }
}

describe("a repeated put of the same bytes", () => {
  it("is safe from a deletion that a holder has not received", async () => {
    const nodes = makeNodes(3)
    const { owners, here, there } = rolesOf(nodes, 2)
    await put(nodes, here, "REPLICATION_POLICY_REPLICA2", 100n)
    await deleteOnAll([here], 200n)
    const again = await put(nodes, here, "REPLICATION_POLICY_REPLICA2", 300n)
    expect(again.created).toBe(true)
    expect(again.durable_on).toEqual([here.node_id, there.node_id])
    await deleteOnAll(nodes.nodes, 200n)
    expect(await nodes.holders(id)).toEqual(owners.map(({ node_id }) => node_id).sort())
    expect((await copyAt(there, id))?.created_at).toBe(100n)
    await deleteOnAll(nodes.nodes, 300n)
    expect(await nodes.holders(id)).toEqual([])
  })

  for (const [how, again] of [
    ["in one call", put],
    ["in pieces", upload],
  ] as const) {
    it(`${how} is safe on the nodes that have them, with unchanged metadata`, async () => {
      const nodes = makeNodes(3)
      const { owners, here, there, other } = rolesOf(nodes, 2)
      const first = await put(nodes, here, "REPLICATION_POLICY_REPLICA2", 100n)
      await deleteOnAll([other], 200n)
      const answer = await again(nodes, here, "REPLICATION_POLICY_REPLICA2", 300n)
      expect(answer).toEqual({
        ...{ id, meta: first.meta, created: false },
        durable_on: [here.node_id, there.node_id],
      })
      await deleteOnAll(nodes.nodes, 200n)
      for (const owner of owners) {
        expect(await copyAt(owner, id)).toMatchObject({ created_at: 100n, put_at: 300n })
        expect(await owner.local.stat(id)).toEqual(first.meta)
        expect((await owner.local.scan(0, 10)).map(({ kind }) => kind)).toEqual(["stored"])
      }
    })
  }

  it("is sent to nodes that have no copy any more, and hinted if that fails", async () => {
    const nodes = makeNodes(3)
    const { here, there } = rolesOf(nodes, 2)
    await put(nodes, here, "REPLICATION_POLICY_REPLICA2", 100n)
    const copy = await copyAt(there, id)
    await there.local.release(id, copy?.stored_at ?? 0n, 150n)
    const answer = await put(nodes, here, "REPLICATION_POLICY_REPLICA2", 300n)
    expect(answer.durable_on).toEqual([here.node_id, there.node_id])
    expect(await copyAt(there, id)).toMatchObject({ created_at: 100n, put_at: 300n })
    there.crash()
    const last = await put(nodes, here, "REPLICATION_POLICY_REPLICA2", 400n)
    expect(last.durable_on).toEqual([here.node_id])
    expect(here.hints).toEqual([{ id, why: "replication", nodes: [there.node_id] }])
  })

  for (const [how, again] of [
    ["in one call", put],
    ["in pieces", upload],
  ] as const) {
    it(`${how} is intact on each reported node, even if copies were corrupt`, async () => {
      const nodes = makeNodes(3)
      const { here, there } = rolesOf(nodes, 2)
      await put(nodes, here, "REPLICATION_POLICY_REPLICA2", 100n)
      for (const corrupt of [[here], [there], [here, there]]) {
        for (const { local } of corrupt) local.corrupt(id)
        const answer = await again(nodes, here, "REPLICATION_POLICY_REPLICA2", nodes.world.now())
        expect(answer.durable_on).toEqual([here.node_id, there.node_id])
        for (const { local } of [here, there]) {
          expect((await local.get(id, {}, 1n)).data).toEqual(new Uint8Array(bytes))
        }
      }
    })
  }

  it("is stored again by a single node that finds its copy corrupt", async () => {
    const nodes = makeNodes(1)
    const [alone] = nodes.nodes
    if (alone === undefined) throw new Error("there is no node")
    await put(nodes, alone, "REPLICATION_POLICY_NONE", 100n)
    expect((await put(nodes, alone, "REPLICATION_POLICY_NONE", 200n)).created).toBe(false)
    alone.local.corrupt(id)
    expect((await put(nodes, alone, "REPLICATION_POLICY_NONE", 300n)).created).toBe(true)
    expect((await alone.local.get(id, {}, 400n)).data).toEqual(new Uint8Array(bytes))
  })

  it("is safe with shards as well", async () => {
    const nodes = makeNodes(7)
    const { owners, here, other } = rolesOf(nodes, 6)
    const first = await put(nodes, here, "REPLICATION_POLICY_EC42", 100_000n)
    await deleteOnAll([other], 200_000n)
    const gone = owners.at(-1)
    gone?.crash()
    const answer = await put(nodes, other, "REPLICATION_POLICY_UNSPECIFIED", 250_000n).catch(
      () => undefined,
    )
    expect(answer?.meta.policy).toBe("REPLICATION_POLICY_EC42")
    const again = await put(nodes, here, "REPLICATION_POLICY_EC42", 300_000n)
    expect(again).toMatchObject({ created: false, meta: first.meta })
    expect(again.durable_on?.length).toBe(5)
    await deleteOnAll(nodes.nodes, 200_000n)
    expect((await nodes.until(read(here, id))).bytes.equals(bytes)).toBe(true)
  })

  it("on a node that knows no other is as safe, unless there can be no other", async () => {
    const nodes = makeNodes(1)
    const [alone] = nodes.nodes
    if (alone === undefined) throw new Error("there is no node")
    await put(nodes, alone, "REPLICATION_POLICY_NONE", 100n)
    const again = await put(nodes, alone, "REPLICATION_POLICY_NONE", 300n)
    expect(again).toMatchObject({ created: false, meta: { created_at: 100n } })
    // Another node has joined, which this one does not know yet.
    await deleteOnAll([alone], 200n)
    expect(await copyAt(alone, id)).toMatchObject({ created_at: 100n, put_at: 300n })
    const single = membersOf("n1", ["n1"])
    expect(isSingle({ members: () => single })).toBe(false)
    expect(isSingle({ members: () => single, is_closed: true })).toBe(true)
    const two = membersOf("n1", ["n1", "n2"])
    expect(isSingle({ members: () => two, is_closed: true })).toBe(false)
  })
})

describe("a repeated put of bytes that are stored in shards", () => {
  it("is refused with another policy, also by a node without a shard", async () => {
    const nodes = makeNodes(8)
    const { owners, here, other } = rolesOf(nodes, 6)
    await put(nodes, here, "REPLICATION_POLICY_EC42", 100_000n)
    for (const node of [here, other]) {
      const work = put(nodes, node, "REPLICATION_POLICY_REPLICA3", 200_000n)
      expect(await faultIn(work)).toBe("BlobAlreadyExists")
    }
    expect(await nodes.holders(id)).toEqual(owners.map(({ node_id }) => node_id).sort())
    const kinds = (await other.local.scan(0, 10)).map(({ kind }) => kind)
    expect(kinds).toEqual(["stored", "released"])
  })

  it("is a repetition without a policy, also by a node without a shard", async () => {
    const nodes = makeNodes(8)
    const { here, other } = rolesOf(nodes, 6)
    const first = await put(nodes, here, "REPLICATION_POLICY_EC42", 100_000n)
    const again = await put(nodes, other, "REPLICATION_POLICY_UNSPECIFIED", 300_000n)
    expect(again).toMatchObject({ created: false, meta: first.meta })
    expect(again.durable_on?.length).toBe(6)
    expect(await copyAt(other, id)).toBeUndefined()
    expect((await copyAt(here, id))?.put_at).toBeGreaterThanOrEqual(300_000n)
  })

  it("is stored if there are too few shards for a blob", async () => {
    const nodes = makeNodes(8)
    const { owners, here, other } = rolesOf(nodes, 6)
    await put(nodes, here, "REPLICATION_POLICY_EC42", 100_000n)
    for (const owner of owners.slice(2)) await owner.local.delete(id, origin, 150_000n)
    const answer = await put(nodes, other, "REPLICATION_POLICY_REPLICA2", 200_000n)
    expect(answer).toMatchObject({ created: true })
    expect((await copyAt(other, id))?.kind).toBe("whole")
  })
})
