/** Gets in a cluster. Source: document 1 §1, §7 NOT_FOUND; DECISIONS, integrity; decision 0123. */
import { describe, expect, it } from "vitest"
import { faultOf } from "#actors/blob-storage/ports/fault.ts"
import type { ReplicationPolicy } from "#schemas/blob-storage/blob.ts"
import { noise } from "../../../../test/contract/blob-storage/engine-bytes.ts"
import { faultIn, idOf, makeNodes, type Nodes, orderOf, origin, read } from "./nodes.ts"

const small = noise(1, 4096)
const large = noise(2, 3_000_000)

/** A cluster with one blob, put on its first owner or on a node that is no owner. */
const withBlob = async (
  policy: ReplicationPolicy,
  bytes: Uint8Array,
  { count = 6, on_owner = true } = {},
) => {
  const nodes = makeNodes(count)
  const id = idOf(bytes)
  const { owners, others } = nodes.rolesOf(id, 3)
  const node = on_owner ? owners[0] : others[0]
  if (node === undefined) throw new Error("there is no such node")
  await nodes.until(node.engine.put(orderOf(policy), [bytes], 100n))
  return { nodes, id, node, owners, others }
}

const lacking = async ({ nodes }: { readonly nodes: Nodes }, id: ReturnType<typeof idOf>) => {
  const holders = await nodes.holders(id)
  return nodes.nodes.filter(({ node_id }) => !holders.includes(node_id))
}

describe("a get of a blob that is not stored here", () => {
  it("is served with its metadata from any node that has it", async () => {
    for (const on_owner of [true, false]) {
      for (const bytes of [new Uint8Array(0), small, large]) {
        const made = await withBlob("REPLICATION_POLICY_NONE", bytes, { on_owner })
        const meta = await made.node.local.stat(made.id)
        for (const reader of await lacking(made, made.id)) {
          const got = await made.nodes.until(read(reader, made.id))
          expect(got.bytes.equals(bytes)).toBe(true)
          expect(got.reading.meta).toEqual(meta)
          expect(got.reading.data === undefined).toBe(bytes === large)
          expect(await made.nodes.until(reader.engine.stat(made.id, "cluster"))).toEqual(meta)
          expect(await faultIn(reader.engine.stat(made.id))).toBe("BlobNotFound")
        }
      }
    }
  })

  it("returns the bytes of a range, and can be read repeatedly or not at all", async () => {
    const made = await withBlob("REPLICATION_POLICY_NONE", large)
    const [reader] = await lacking(made, made.id)
    if (reader === undefined) throw new Error("all have it")
    for (const [offset, length] of [
      [0, 10],
      [5, 2_000_000],
      [2_999_999, 5],
      [3_000_000, 5],
      [4_000_000, 5],
      [1_000_000, undefined],
    ] as const) {
      const range = { offset, ...(length === undefined ? {} : { length }) }
      const reading = await made.nodes.until(reader.engine.get(made.id, range, 1n))
      const wanted = large.subarray(offset, length === undefined ? undefined : offset + length)
      for (let turn = 0; turn < 2; turn++) {
        const all = async () => {
          const parts: Array<Uint8Array> = []
          for await (const part of reading.windows()) parts.push(part)
          return Buffer.concat(parts)
        }
        expect((await made.nodes.until(all())).equals(wanted)).toBe(true)
      }
    }
  })

  it("continues on another node if the first dies in the middle", async () => {
    const made = await withBlob("REPLICATION_POLICY_REPLICA2", large)
    const [reader] = await lacking(made, made.id)
    if (reader === undefined) throw new Error("all have it")
    const crashing = async () => {
      const { windows } = await reader.engine.get(made.id, {}, 1n)
      const parts: Array<Uint8Array> = []
      for await (const part of windows()) {
        if (parts.length === 2) made.node.crash()
        parts.push(part)
      }
      return Buffer.concat(parts)
    }
    expect((await made.nodes.until(crashing())).equals(large)).toBe(true)
  })

  it("fails if the only node with the blob dies in the middle", async () => {
    const made = await withBlob("REPLICATION_POLICY_NONE", large)
    const [reader] = await lacking(made, made.id)
    if (reader === undefined) throw new Error("all have it")
    let taken = 0
    const crashing = async () => {
      const { windows } = await reader.engine.get(made.id, {}, 1n)
      for await (const part of windows()) {
        taken += part.length
        made.node.crash()
      }
    }
    expect(await faultIn(made.nodes.until(crashing()))).toBe("BlobUnreachable")
    expect(taken).toBeLessThan(large.length)
  })

  it("queries the next node if one is silent, long before its deadline", async () => {
    const made = await withBlob("REPLICATION_POLICY_REPLICA3", small)
    const [reader] = await lacking(made, made.id)
    const [first, second] = made.owners
    if (!reader || !first || !second) throw new Error("too few nodes")
    made.nodes.network.block(reader.node_id, first.node_id)
    made.nodes.network.block(reader.node_id, second.node_id)
    const began = made.nodes.world.ms()
    expect((await made.nodes.until(read(reader, made.id))).bytes.equals(small)).toBe(true)
    expect(made.nodes.world.ms() - began).toBeLessThan(200)
  })

  it("is not found if all nodes say so, and unavailable if one did not respond", async () => {
    for (const at of [0, 4]) {
      const nodes = makeNodes(5)
      const id = idOf(small)
      const { owners, others } = nodes.rolesOf(id, 3)
      const all = [...owners, ...others]
      const reader = all[3]
      if (reader === undefined) throw new Error("too few nodes")
      expect(await faultIn(nodes.until(reader.engine.get(id, {}, 1n)))).toBe("BlobNotFound")
      expect(await faultIn(nodes.until(reader.engine.stat(id, "cluster")))).toBe("BlobNotFound")
      all[at]?.crash()
      expect(await faultIn(nodes.until(reader.engine.get(id, {}, 1n)))).toBe("BlobUnreachable")
      expect(await faultIn(nodes.until(reader.engine.stat(id, "cluster")))).toBe("BlobUnreachable")
    }
  })

  it("is not found if the node without a response is offline, and names it", async () => {
    for (const left of [4, 1]) {
      const nodes = makeNodes(5)
      const names = nodes.nodes.map(({ node_id }) => node_id)
      const offline = names.slice(left)
      for (const name of offline) nodes.nodeOf(name).crash()
      nodes.setMembers(names.slice(0, left), [], offline)
      const { engine } = nodes.nodeOf("n1")
      // A get of a range starts with a stat.
      const requests = [
        () => engine.get(idOf(small), {}, 1n),
        () => engine.stat(idOf(small), "cluster"),
      ]
      for (const request of requests) {
        const fault = await nodes.until(request().then(undefined, faultOf))
        expect(fault).toEqual({ _tag: "BlobNotFound", id: idOf(small), not_asked: offline })
      }
    }
  })

  it("is unavailable if a shard is found and the others may be offline", async () => {
    for (const left of [3, 1]) {
      const nodes = makeNodes(6)
      const id = idOf(large)
      const { owners } = nodes.rolesOf(id, 6)
      const put = owners[0]?.engine.put(orderOf("REPLICATION_POLICY_EC42"), [large], 1n)
      await nodes.until(put ?? Promise.reject(new Error("there is no owner")))
      const names = owners.map(({ node_id }) => node_id)
      for (const node of owners.slice(left)) node.crash()
      nodes.setMembers(names.slice(0, left), [], names.slice(left))
      const response = nodes.nodeOf(names[0] ?? "").engine.get(id, {}, 1n)
      expect(await faultIn(nodes.until(response))).toBe("BlobUnreachable")
      // The nodes are removed with their copies: then no node knows that there were more.
      nodes.setMembers(names.slice(0, left))
      const again = nodes.nodeOf(names[0] ?? "").engine.get(id, {}, 1n)
      expect(await faultIn(nodes.until(again))).toBe("BlobNotFound")
    }
  })

  it("also queries leaving nodes", async () => {
    const made = await withBlob("REPLICATION_POLICY_NONE", small)
    const names = made.nodes.nodes.map(({ node_id }) => node_id)
    made.nodes.setMembers(
      names.filter((name) => name !== made.node.node_id),
      [made.node.node_id],
    )
    const [reader] = await lacking(made, made.id)
    if (reader === undefined) throw new Error("all have it")
    expect((await made.nodes.until(read(reader, made.id))).bytes.equals(small)).toBe(true)
  })

  it("hints that an owner lacks it, unless it was deleted there", async () => {
    const made = await withBlob("REPLICATION_POLICY_NONE", small, { on_owner: false })
    const owner = made.owners[0]
    const other = (await lacking(made, made.id)).find((node) => !made.owners.includes(node))
    if (!owner || !other) throw new Error("too few nodes")
    await made.nodes.until(read(other, made.id))
    expect(other.hints).toEqual([])
    await made.nodes.until(read(owner, made.id))
    expect(owner.hints).toEqual([{ id: made.id, why: "missing", nodes: [] }])
    await owner.engine.delete(made.id, origin, 300n)
    await made.nodes.until(read(owner, made.id))
    expect(owner.hints.length).toBe(1)
  })
})

describe("a corrupt copy", () => {
  it("is served by another node, whole or from the middle on, and hinted", async () => {
    for (const [bytes, offset] of [
      [small, 0],
      [large, 0],
      [large, 2_500_000],
    ] as const) {
      const made = await withBlob("REPLICATION_POLICY_REPLICA2", bytes)
      expect(made.node.local.corrupt(made.id, offset)).toBe(true)
      const got = await made.nodes.until(read(made.node, made.id))
      expect(got.bytes.equals(bytes)).toBe(true)
      expect(made.node.hints).toEqual([{ id: made.id, why: "corrupt", nodes: [] }])
    }
  })

  it("of another node is skipped", async () => {
    const made = await withBlob("REPLICATION_POLICY_REPLICA2", large)
    const [reader] = await lacking(made, made.id)
    if (reader === undefined) throw new Error("all have it")
    made.node.local.corrupt(made.id, 2_500_000)
    expect((await made.nodes.until(read(reader, made.id))).bytes.equals(large)).toBe(true)
  })

  it("that is the only one means a corrupt blob, not a missing one", async () => {
    const made = await withBlob("REPLICATION_POLICY_NONE", small)
    made.node.local.corrupt(made.id)
    expect(await faultIn(made.nodes.until(read(made.node, made.id)))).toBe("BlobCorrupt")
    expect(await faultIn(made.nodes.until(read(made.node, made.id)))).toBe("BlobNotFound")
  })
})

describe("an erasure coded blob", () => {
  it("is readable on every node with any two offline, whole and in ranges", async () => {
    const made = await withBlob("REPLICATION_POLICY_EC42", large, { count: 8 })
    const check = async () => {
      for (const node of made.nodes.nodes.filter(({ node_id }) => !dead.has(node_id))) {
        const got = await made.nodes.until(read(node, made.id))
        expect(got.bytes.equals(large)).toBe(true)
        const part = await made.nodes.until(read(node, made.id, { offset: 900_000, length: 70 }))
        expect(part.bytes.equals(large.subarray(900_000, 900_070))).toBe(true)
        const meta = await made.nodes.until(node.engine.stat(made.id, "cluster"))
        expect(meta.size).toBe(3_000_000n)
      }
    }
    const dead = new Set<string>()
    await check()
    for (const node of made.nodes.rolesOf(made.id, 6).owners.slice(1, 3)) {
      node.crash()
      dead.add(node.node_id)
    }
    await check()
    const third = made.nodes.rolesOf(made.id, 6).owners[3]
    third?.crash()
    const [reader] = made.others.filter(
      ({ node_id }) => !dead.has(node_id) && node_id !== third?.node_id,
    )
    if (reader === undefined) throw new Error("too few nodes")
    expect(await faultIn(made.nodes.until(read(reader, made.id)))).toBe("BlobUnreachable")
  })
})
