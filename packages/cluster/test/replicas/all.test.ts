/**
 * Lists and deletes on all nodes, and nodes that send wrong bytes. Source: DECISIONS, list, delete;
 * 0123.
 */
import { describe, expect, it } from "vitest"
import type { Peers } from "#actors/blob-storage/ports/peers.ts"
import { noise } from "../../../../test/contract/blob-storage/engine-bytes.ts"
import { boundsOf } from "../../replicas/list.ts"
import { faultIn, idOf, makeNodes, type Node, orderOf, origin, read } from "./nodes.ts"

const small = noise(1, 4096)
const large = noise(2, 3_000_000)

const firstOf = (nodes: ReadonlyArray<Node>) => {
  const [node] = nodes
  if (node === undefined) throw new Error("there is no such node")
  return node
}

/** Forty blobs on three nodes, one deleted cluster-wide while a node was offline. */
const stocked = async () => {
  const nodes = makeNodes(3)
  const contents = Array.from({ length: 40 }, (_, n) => noise(n + 100, 50))
  for (const [n, bytes] of contents.entries()) {
    const node = nodes.nodes[n % 3]
    const policy = n % 2 === 0 ? "REPLICATION_POLICY_NONE" : "REPLICATION_POLICY_REPLICA2"
    if (node) await nodes.until(node.engine.put(orderOf(policy), [bytes], BigInt(n + 1)))
  }
  return { nodes, ids: contents.map(idOf).toSorted() }
}

describe("a list of the cluster", () => {
  it("contains every blob once and in order, page by page, and by prefix", async () => {
    const { nodes, ids } = await stocked()
    for (const { engine } of nodes.nodes) {
      for (const limit of [1, 7, 40, 1000]) {
        const seen: Array<string> = []
        for (let after = "", more = true; more; ) {
          const page = await nodes.until(engine.list(after, "", limit, "cluster"))
          expect(page.ids.length).toBeLessThanOrEqual(limit)
          seen.push(...page.ids)
          more = page.has_more
          after = page.after_id ?? page.ids.at(-1) ?? ""
        }
        expect(seen).toEqual(ids)
      }
      for (const prefix of ["0", "7", "f", ids[3]?.slice(0, 3) ?? ""]) {
        const page = await nodes.until(engine.list("", prefix, 100, "cluster"))
        expect(page).toEqual({
          ids: ids.filter((id) => id.startsWith(prefix)),
          has_more: false,
        })
      }
      const here = await engine.list("", "", 100)
      expect(here.ids.length).toBeLessThan(40)
    }
  })

  it("is complete if each node has deleted many blobs", async () => {
    const { nodes } = await stocked()
    for (const [n, { local }] of nodes.nodes.entries()) {
      const { ids } = await local.list("", "", 100)
      const gone = ids.filter((_, at) => (at + n) % 4 !== 0)
      for (const id of gone) await local.delete(id, origin, 2n)
    }
    const held = await Promise.all(nodes.nodes.map(({ local }) => local.list("", "", 100)))
    const ids = [...new Set(held.flatMap((page) => page.ids))].toSorted()
    expect(ids.length).toBeGreaterThan(10)
    for (const limit of [1, 2, 5]) {
      const seen: Array<string> = []
      for (let after = "", more = true; more; ) {
        const { engine } = nodes.nodeOf("n2")
        const page = await nodes.until(engine.list(after, "", limit, "cluster"))
        seen.push(...page.ids)
        more = page.has_more
        after = page.after_id ?? page.ids.at(-1) ?? ""
      }
      expect(seen).toEqual(ids)
    }
  })

  it("fails if a node does not respond", async () => {
    const { nodes } = await stocked()
    nodes.nodeOf("n3").crash()
    const list = nodes.nodeOf("n1").engine.list("", "", 10, "cluster")
    expect(await faultIn(nodes.until(list))).toBe("BlobUnreachable")
  })

  it("excludes cluster-wide deletions, even if one node has not received them", async () => {
    const { nodes, ids } = await stocked()
    const [gone] = ids
    if (gone === undefined) throw new Error("there are no blobs")
    const holders = await nodes.holders(gone)
    const away = holders[0] ?? ""
    const here = firstOf(nodes.nodes.filter(({ node_id }) => node_id !== away))
    nodes.network.block(here.node_id, away)
    await nodes.until(here.engine.delete(gone, origin, nodes.world.now(), "cluster"))
    nodes.network.heal()
    expect(await nodes.holders(gone)).toEqual([away])
    const page = await nodes.until(here.engine.list("", "", 100, "cluster"))
    expect(page.ids).toEqual(ids.slice(1))
    expect(await faultIn(nodes.until(read(here, gone)))).toBe("BlobNotFound")
    expect(await faultIn(nodes.until(here.engine.stat(gone, "cluster")))).toBe("BlobNotFound")
  })

  it("searches for a prefix between the surrounding identifiers", () => {
    const f31 = "f".repeat(31)
    const zeros = "0".repeat(31)
    expect(boundsOf("")).toEqual({ after: "", until: "" })
    expect(boundsOf("0")).toEqual({ after: "", until: `1${zeros}` })
    expect(boundsOf("f")).toEqual({ after: `e${f31}`, until: "" })
    expect(boundsOf("a00")).toEqual({
      after: `9ff${"f".repeat(29)}`,
      until: `a01${"0".repeat(29)}`,
    })
    expect(boundsOf("aff")).toEqual({
      after: `afe${"f".repeat(29)}`,
      until: `b00${"0".repeat(29)}`,
    })
  })
})

describe("a delete on all nodes", () => {
  it("permanently removes the blob from every node", async () => {
    for (const policy of ["REPLICATION_POLICY_REPLICA3", "REPLICATION_POLICY_EC42"] as const) {
      const nodes = makeNodes(7)
      const id = idOf(small)
      const { owners, others } = nodes.rolesOf(id, 6)
      const here = firstOf(others)
      await nodes.until(firstOf(owners).engine.put(orderOf(policy), [small], 100n))
      await nodes.until(here.engine.delete(id, origin, 200_000n, "cluster"))
      expect(await nodes.holders(id)).toEqual([])
      for (const { engine, local } of nodes.nodes) {
        expect(await faultIn(nodes.until(engine.get(id, {}, 1n)))).toBe("BlobNotFound")
        expect((await local.copiesOf([id]))[0]).toMatchObject({
          kind: "tombstone",
          is_cluster_wide: true,
          deleted_at: 200_000n,
        })
      }
      await nodes.until(here.engine.put(orderOf(policy), [small], 300_000n))
      expect((await nodes.until(read(firstOf(owners), id))).bytes.equals(small)).toBe(true)
    }
  })

  it("on a leaving node responds once a staying node knows of it", async () => {
    for (const down of [["n2"], ["n2", "n3"]]) {
      const nodes = makeNodes(3)
      const leaving = nodes.nodeOf("n1")
      const put = leaving.engine.put(orderOf("REPLICATION_POLICY_REPLICA3"), [small], 100n)
      const { id } = await nodes.until(put)
      nodes.setMembers(["n2", "n3"], ["n1"])
      for (const name of down) nodes.nodeOf(name).crash()
      const deleted = nodes.until(leaving.engine.delete(id, origin, 200n, "cluster"))
      expect(await faultIn(deleted)).toBe(down.length === 2 ? "BlobUnreachable" : "none")
    }
  })

  it("is later than a copy whose clock was ahead", async () => {
    const nodes = makeNodes(4)
    const id = idOf(small)
    const { owners, others } = nodes.rolesOf(id, 2)
    const put = firstOf(owners).engine.put(
      orderOf("REPLICATION_POLICY_REPLICA2"),
      [small],
      9_000_000n,
    )
    await nodes.until(put)
    await nodes.until(firstOf(others).engine.delete(id, origin, 200_000n, "cluster"))
    expect(await nodes.holders(id)).toEqual([])
  })

  it("is applied here if others are offline, and reports them", async () => {
    const nodes = makeNodes(3)
    const id = idOf(small)
    const here = nodes.nodeOf("n1")
    await nodes.until(here.engine.put(orderOf("REPLICATION_POLICY_REPLICA3"), [small], 100n))
    nodes.nodeOf("n2").crash()
    await nodes.until(here.engine.delete(id, origin, 200_000n, "cluster"))
    expect(await nodes.holders(id)).toEqual(["n2"])
    expect(here.reports.length).toBe(1)
    expect(here.reports[0]).toContain("on n2: ")
  })

  it("is local to this node without the scope", async () => {
    const nodes = makeNodes(3)
    const id = idOf(small)
    const here = nodes.nodeOf("n1")
    await nodes.until(here.engine.put(orderOf("REPLICATION_POLICY_REPLICA3"), [small], 100n))
    await nodes.until(here.engine.delete(id, origin, 200_000n))
    expect(await nodes.holders(id)).toEqual(["n2", "n3"])
    expect((await nodes.until(read(here, id))).bytes.equals(small)).toBe(true)
  })
})

describe("a node that sends wrong bytes", () => {
  /** The node's responses with one byte changed, at or after this offset. */
  const falsify = (node_id: () => string, at: number) => (peers: Peers) => ({
    ...peers,
    fetch: async (...args: Parameters<Peers["fetch"]>) => {
      const fetched = await peers.fetch(...args)
      if (args[0].node_id !== node_id()) return fetched
      let place = args[2].offset ?? 0
      const bytes = (async function* () {
        for await (const piece of fetched.bytes) {
          const changed = Uint8Array.from(piece)
          const offset = at - place
          if (offset >= 0 && offset < changed.length) changed[offset] = (changed[offset] ?? 0) ^ 1
          place += piece.length
          yield changed
        }
      })()
      return { ...fetched, bytes }
    },
  })

  it("is skipped if another has the blob, and its bytes are never accepted", async () => {
    let faulty = ""
    for (const [bytes, at] of [
      [small, 7],
      [large, 7],
      [large, 2_999_999],
    ] as const) {
      const nodes = makeNodes(
        4,
        undefined,
        falsify(() => faulty, at),
      )
      const id = idOf(bytes)
      const { owners, others } = nodes.rolesOf(id, 2)
      const reader = firstOf(others)
      const put = firstOf(owners).engine.put(orderOf("REPLICATION_POLICY_NONE"), [bytes], 100n)
      await nodes.until(put)
      faulty = firstOf(owners).node_id
      const alone = nodes.until(read(reader, id))
      const whole_window = bytes === small
      expect(await faultIn(alone)).toBe(whole_window ? "BlobUnreachable" : "BlobStoreFailed")
      if (!whole_window) continue
      const { engine } = firstOf(owners.slice(1))
      await nodes.until(engine.put(orderOf("REPLICATION_POLICY_NONE"), [bytes], 100n))
      expect((await nodes.until(read(reader, id))).bytes.equals(bytes)).toBe(true)
    }
  })

  it("is detected before the last bytes are returned", async () => {
    let faulty = ""
    const nodes = makeNodes(
      3,
      undefined,
      falsify(() => faulty, 3),
    )
    const id = idOf(large)
    const { owners, others } = nodes.rolesOf(id, 1)
    await nodes.until(firstOf(owners).engine.put(orderOf("REPLICATION_POLICY_NONE"), [large], 100n))
    faulty = firstOf(owners).node_id
    let taken = 0
    const reading = async () => {
      const { windows } = await firstOf(others).engine.get(id, {}, 1n)
      for await (const part of windows()) taken += part.length
    }
    expect(await faultIn(nodes.until(reading()))).toBe("BlobStoreFailed")
    expect(taken).toBeLessThan(large.length)
  })
})
