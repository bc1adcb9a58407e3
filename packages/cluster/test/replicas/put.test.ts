/** Puts in a cluster. Source: document 1 §1, §2 Replication policies, §7; decision 0123. */
import { describe, expect, it } from "vitest"
import { noise } from "../../../../test/contract/blob-storage/engine-bytes.ts"
import { faultIn, idOf, makeNodes, type Node, type Nodes, orderOf } from "./nodes.ts"

const small = noise(1, 4096)
const large = noise(2, 3_000_000)
const small_id = idOf(small)

const put = ({ until }: Nodes, node: Node, policy: Parameters<typeof orderOf>[0], bytes = small) =>
  until(node.engine.put(orderOf(policy), [bytes], 100n))

const upload = async (node: Node, policy: Parameters<typeof orderOf>[0], bytes: Uint8Array) => {
  const order = { ...orderOf("REPLICATION_POLICY_UNSPECIFIED") }
  const session = node.engine.upload(order, undefined)
  for (let at = 0; at < bytes.length; at += 500_000) {
    await session.write(bytes.subarray(at, at + 500_000))
  }
  // As in a JSON message, where the policy may follow the bytes.
  Object.assign(order, { policy })
  return session.finish(100n)
}

const first = (nodes: ReadonlyArray<Node>) => {
  const [node] = nodes
  if (node === undefined) throw new Error("there is no such node")
  return node
}

describe("a put in a cluster", () => {
  const wanted = [
    ["REPLICATION_POLICY_NONE", 1],
    ["REPLICATION_POLICY_REPLICA2", 2],
    ["REPLICATION_POLICY_REPLICA3", 3],
    ["REPLICATION_POLICY_UNSPECIFIED", 3],
  ] as const

  it("makes the policy's number of copies, one here, with the first one's times", async () => {
    for (const [policy, copies] of wanted) {
      for (const at of [0, 1, 2, 3, 4]) {
        const nodes = makeNodes(5)
        const node = first(nodes.nodes.slice(at))
        const answer = await put(nodes, node, policy)
        const holders = await nodes.holders(small_id)
        expect([policy, holders.length]).toEqual([policy, copies])
        expect(holders).toContain(node.node_id)
        expect([...(answer.durable_on ?? [node.node_id])].toSorted()).toEqual(holders)
        const owners = nodes.rolesOf(small_id, copies).owners.map(({ node_id }) => node_id)
        const others = holders.filter((holder) => holder !== node.node_id)
        expect(owners.filter((owner) => owner !== node.node_id).slice(0, copies - 1)).toEqual(
          expect.arrayContaining(others),
        )
        for (const holder of holders) {
          const { local } = nodes.nodeOf(holder)
          expect(await local.stat(small_id)).toEqual(answer.meta)
          const [fact] = await local.scan(0, 10)
          expect(fact).toMatchObject({ actor: "tester", request_id: "r-1" })
        }
        expect(node.hints).toEqual([])
      }
    }
  })

  it("sends large copies from its store, and handles an upload like a put", async () => {
    const nodes = makeNodes(3)
    const [one, other] = [first(nodes.nodes), first(nodes.nodes.slice(1))]
    await put(nodes, one, "REPLICATION_POLICY_REPLICA2", large)
    const answer = await nodes.until(upload(other, "REPLICATION_POLICY_REPLICA3", noise(3, 999)))
    expect((await nodes.holders(idOf(large))).length).toBe(2)
    expect(answer.durable_on?.toSorted()).toEqual(["n1", "n2", "n3"])
    const big = await nodes.until(upload(one, "REPLICATION_POLICY_REPLICA3", noise(4, 2_000_000)))
    expect((await nodes.holders(big.id)).length).toBe(3)
    expect(big.durable_on?.length).toBe(3)
  })

  it("sends no copy to nodes that deleted it since the put, and names the holders", async () => {
    const nodes = makeNodes(3)
    const node = first(nodes.nodes)
    await put(nodes, node, "REPLICATION_POLICY_REPLICA3")
    const other = first(nodes.nodes.slice(1))
    const before = await other.local.scan(0, 10)
    await other.local.delete(small_id, orderOf("REPLICATION_POLICY_NONE").origin, 200n)
    const answer = await put(nodes, node, "REPLICATION_POLICY_UNSPECIFIED")
    expect(answer).toMatchObject({ created: false })
    const stayed = nodes.nodes.filter(({ node_id }) => node_id !== other.node_id)
    expect(answer.durable_on?.toSorted()).toEqual(stayed.map(({ node_id }) => node_id).sort())
    expect(await nodes.holders(small_id)).not.toContain(other.node_id)
    expect(before.length).toBe(1)
  })

  it("succeeds if others are offline: hinted, counted, reported once a minute", async () => {
    const nodes = makeNodes(3)
    const { owners, others } = nodes.rolesOf(small_id, 2)
    const here = first(owners)
    const gone = first(owners.slice(1))
    gone.crash()
    const answer = await put(nodes, here, "REPLICATION_POLICY_REPLICA2")
    expect(answer).toMatchObject({ created: true, durable_on: [here.node_id] })
    expect(here.hints).toEqual([{ id: small_id, why: "replication", nodes: [gone.node_id] }])
    expect(here.engine.counts().replication_failures).toBe(1)
    expect(here.reports.length).toBe(1)
    expect(here.reports[0]).toContain(`1 copies or deletions failed`)
    expect(here.reports[0]).toContain(`on ${gone.node_id}: `)

    first(others).crash()
    for (let n = 10; n < 15; n++) {
      await put(nodes, here, "REPLICATION_POLICY_REPLICA3", noise(n, 100))
    }
    expect(here.reports.length).toBe(1)
    await nodes.until(nodes.world.pause(61_000))
    await put(nodes, here, "REPLICATION_POLICY_REPLICA3", noise(20, 100))
    expect(here.reports.length).toBe(2)
    // Two for each of six puts, none of which was reported before.
    expect(here.reports[1]).toContain("12 copies or deletions failed")
    expect(here.engine.counts().replication_failures).toBe(13)
    expect(here.engine.counts().open_puts).toBe(0)
  })

  it("is stored again if all existing copies are corrupt", async () => {
    const nodes = makeNodes(3)
    const here = first(nodes.nodes)
    const { id } = await nodes.until(upload(here, "REPLICATION_POLICY_REPLICA3", small))
    for (const { local } of nodes.nodes.slice(1)) {
      const [copy] = await local.copiesOf([id])
      if (copy?.kind === "whole") await local.release(id, copy.stored_at, 150n)
    }
    here.local.corrupt(id)
    const again = await nodes.until(upload(here, "REPLICATION_POLICY_REPLICA3", small))
    expect(again).toMatchObject({ created: true })
    expect((await nodes.holders(id)).length).toBe(3)
  })

  it("waits five seconds for silent nodes, in parallel", async () => {
    const nodes = makeNodes(4)
    const { owners } = nodes.rolesOf(small_id, 3)
    const [here, ...silent] = owners
    if (here === undefined) throw new Error("there is no owner")
    for (const { node_id } of silent) nodes.network.block(here.node_id, node_id)
    const began = nodes.world.ms()
    const answer = await put(nodes, here, "REPLICATION_POLICY_REPLICA3")
    expect(answer.durable_on).toEqual([here.node_id])
    expect(nodes.world.ms() - began).toBeGreaterThanOrEqual(5000)
    expect(nodes.world.ms() - began).toBeLessThan(5500)
    expect(here.engine.counts().replication_failures).toBe(2)
  })

  it("is durable here first: a put that this store refuses is sent to no other", async () => {
    const nodes = makeNodes(3, 1000)
    const here = first(nodes.nodes)
    expect(await faultIn(put(nodes, here, "REPLICATION_POLICY_REPLICA3"))).toBe(
      "BlobCapacityExceeded",
    )
    expect(await nodes.holders(small_id)).toEqual([])
  })

  it("accepts a deletion on another node, which is hinted and no failure", async () => {
    const nodes = makeNodes(3)
    const { owners } = nodes.rolesOf(small_id, 2)
    const [here, there] = [first(owners), first(owners.slice(1))]
    await there.local.delete(small_id, orderOf("REPLICATION_POLICY_NONE").origin, 200n)
    const answer = await put(nodes, here, "REPLICATION_POLICY_REPLICA2")
    expect(answer.durable_on).toEqual([here.node_id])
    expect(here.hints).toEqual([{ id: small_id, why: "replication", nodes: [there.node_id] }])
    expect(here.engine.counts().replication_failures).toBe(0)
    expect(here.reports).toEqual([])
  })

  it("makes one more copy if the receiver is not a full member", async () => {
    const nodes = makeNodes(4)
    const node = first(nodes.nodes.slice(3))
    nodes.setMembers(["n1", "n2", "n3"])
    await put(nodes, node, "REPLICATION_POLICY_REPLICA2")
    expect((await nodes.holders(small_id)).length).toBe(3)
  })

  it("is refused if the node leaves, even for an upload that began before", async () => {
    const nodes = makeNodes(3)
    const here = first(nodes.nodes)
    const session = here.engine.upload(orderOf("REPLICATION_POLICY_REPLICA2"), undefined)
    await session.write(small)
    nodes.setMembers(["n2", "n3"], ["n1"])
    expect(await faultIn(put(nodes, here, "REPLICATION_POLICY_NONE"))).toBe("BlobUnreachable")
    expect(await faultIn(session.finish(100n))).toBe("BlobUnreachable")
    await session.abort()
    expect(await nodes.holders(small_id)).toEqual([])
    const other = first(nodes.nodes.slice(1))
    await put(nodes, other, "REPLICATION_POLICY_REPLICA2")
    expect(await nodes.holders(small_id)).toEqual(["n2", "n3"])
  })

  it("goes directly to the store if the node is alone", async () => {
    const nodes = makeNodes(1)
    const here = first(nodes.nodes)
    const answer = await here.engine.put(orderOf("REPLICATION_POLICY_REPLICA3"), [small], 100n)
    expect(answer).toEqual({ ...answer, created: true })
    expect(answer.durable_on).toBeUndefined()
    expect(here.hints).toEqual([])
  })
})

describe("an erasure coded put", () => {
  const policy = "REPLICATION_POLICY_EC42"

  it("leaves a shard on each of six nodes, for any receiver and any kind of put", async () => {
    for (const bytes of [new Uint8Array(0), small, large]) {
      const nodes = makeNodes(8)
      const { owners, others } = nodes.rolesOf(idOf(bytes), 6)
      const node = first(others)
      const answer = await put(nodes, node, policy, bytes)
      const named = owners.map(({ node_id }) => node_id).toSorted()
      expect(answer.durable_on?.toSorted()).toEqual(named)
      expect(await nodes.holders(answer.id)).toEqual(named)
      const again = await nodes.until(upload(first(owners), policy, bytes))
      expect(again).toMatchObject({ created: false, id: answer.id })
      expect(again.meta.created_at).toBe(answer.meta.created_at)
    }
  })

  it("is coded from the disk if its policy follows its bytes", async () => {
    const nodes = makeNodes(6)
    const answer = await nodes.until(upload(first(nodes.nodes), policy, large))
    expect(answer.created).toBe(true)
    expect((await nodes.holders(answer.id)).length).toBe(6)
    const kinds = await Promise.all(nodes.nodes.map(({ local }) => local.copiesOf([answer.id])))
    expect(kinds.map(([copy]) => copy?.kind)).toEqual(Array(6).fill("shard"))
  })

  it("is refused with too few nodes, and tolerates two offline ones but not three", async () => {
    const few = makeNodes(5)
    expect(await faultIn(put(few, first(few.nodes), policy))).toBe("BlobTooFewNodes")

    const nodes = makeNodes(7)
    const { owners } = nodes.rolesOf(small_id, 6)
    const [here, one, two, three] = owners
    one?.crash()
    two?.crash()
    if (here === undefined) throw new Error("there is no owner")
    const answer = await put(nodes, here, policy)
    expect(answer.durable_on?.length).toBe(4)
    expect(here.engine.counts().replication_failures).toBe(2)
    expect(here.hints.map(({ why }) => why)).toContain("replication")

    three?.crash()
    const dead = [one, two, three]
    const ownedByDead = (bytes: Uint8Array) =>
      nodes.rolesOf(idOf(bytes), 6).owners.filter((node) => dead.includes(node)).length === 3
    const bytes = Array.from({ length: 50 }, (_, n) => noise(n + 100, 5000)).find(ownedByDead)
    if (bytes === undefined) throw new Error("none of these has all three for owners")
    expect(await faultIn(put(nodes, here, policy, bytes))).toBe("BlobShardsFailed")
    expect(await nodes.holders(idOf(bytes))).toEqual([])
  })

  it("is replaced by a whole copy if it was never finished", async () => {
    for (const receiver of [
      "REPLICATION_POLICY_UNSPECIFIED",
      "REPLICATION_POLICY_REPLICA2",
    ] as const) {
      const nodes = makeNodes(6)
      const node = first(nodes.nodes)
      await put(nodes, node, policy)
      const [holder, ...lost] = nodes.nodes
      for (const { local } of lost.slice(0, 3)) {
        const [copy] = await local.copiesOf([small_id])
        if (copy?.kind === "shard") await local.release(small_id, copy.stored_at, 150n)
      }
      if (holder === undefined) throw new Error("there is no node")
      const answer = await put(nodes, holder, receiver)
      expect(answer.created).toBe(true)
      expect((await holder.local.copiesOf([small_id]))[0]?.kind).toBe("whole")
    }
  })

  it("is not replaced by an upload while silent nodes may have the rest", async () => {
    const nodes = makeNodes(6)
    const [holder, ...others] = nodes.nodes
    if (holder === undefined) throw new Error("there is no node")
    const { id } = await put(nodes, holder, policy)
    const again = () => nodes.until(upload(holder, "REPLICATION_POLICY_UNSPECIFIED", small))
    for (const { node_id } of others.slice(0, 3)) nodes.network.block(holder.node_id, node_id)
    expect(await faultIn(again())).toBe("BlobUnreachable")
    nodes.network.heal()
    const names = others.map(({ node_id }) => node_id)
    nodes.setMembers([holder.node_id, ...names.slice(3)], [], names.slice(0, 3))
    expect(await faultIn(again())).toBe("BlobUnreachable")
    expect((await nodes.holders(id)).length).toBe(6)
    for (const { local } of others.slice(0, 3)) {
      const [copy] = await local.copiesOf([id])
      if (copy?.kind === "shard") await local.release(id, copy.stored_at, 150n)
    }
    nodes.setMembers([holder.node_id, ...names])
    expect(await faultIn(again())).toBe("BlobUnreachable")
    expect(await nodes.holders(id)).not.toContain(holder.node_id)
    expect(await again()).toMatchObject({ created: true })
  })

  it("stays in place, and another policy is a conflict", async () => {
    const nodes = makeNodes(6)
    const node = first(nodes.nodes)
    await put(nodes, node, policy)
    expect(await put(nodes, node, "REPLICATION_POLICY_UNSPECIFIED")).toMatchObject({
      created: false,
    })
    const other = put(nodes, node, "REPLICATION_POLICY_REPLICA2")
    expect(await faultIn(other)).toBe("BlobAlreadyExists")
  })
})
