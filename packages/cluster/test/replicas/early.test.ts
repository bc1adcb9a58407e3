/** Copies are sent while this node's disk writes its own. Source: document 1 §1; decision 0126. */
import { describe, expect, it } from "vitest"
import type { PutResult } from "#actors/blob-storage/ports/engine.ts"
import { faultError } from "#actors/blob-storage/ports/fault.ts"
import type { NodeEngine } from "#actors/blob-storage/ports/node-engine.ts"
import type { Peers } from "#actors/blob-storage/ports/peers.ts"
import { blobHasher } from "#adapters/blob-storage/blob-hasher.ts"
import { memoryEngine } from "#adapters/blob-storage/memory/engine.ts"
import { noise } from "../../../../test/contract/blob-storage/engine-bytes.ts"
import { clusterEngine } from "../../replicas/engine.ts"
import { rollbackGuard } from "../../rollback.ts"
import { directPeers, type Host, timing } from "./direct.ts"
import { faultIn, idOf, membersOf, openCode, orderOf, pool } from "./nodes.ts"

const bytes = noise(1, 4096)
const id = idOf(bytes)

/** Two nodes; each put waits for the disk of the first. */
const twoNodes = (disk: (answer: PutResult) => Promise<PutResult>) => {
  const hosts = new Map<string, Host>()
  const down = new Set<string>()
  const stores = ["n1", "n2"].map((node_id) => {
    const local = memoryEngine()
    hosts.set(node_id, { local, guard: rollbackGuard(local, timing) })
    return local
  })
  const [here = memoryEngine(), there = memoryEngine()] = stores
  const local: NodeEngine = {
    ...here,
    put: async (order, parts, at, placed) => disk(await here.put(order, parts, at, placed)),
  }
  let sends = 0
  const direct = directPeers(hosts, down)
  const peers: Peers = {
    ...direct,
    send: (...sending) => {
      sends += 1
      return direct.send(...sending)
    },
  }
  const hints: Array<unknown> = []
  const members = membersOf("n1", ["n1", "n2"])
  const engine = clusterEngine({
    local,
    guard: rollbackGuard(local, timing),
    peers,
    timing,
    openCode,
    hasher: blobHasher,
    pool,
    members: () => members,
    hint: (hint) => void hints.push(hint),
    report: () => undefined,
  })
  const put = () => engine.put(orderOf("REPLICATION_POLICY_REPLICA2"), [bytes], 100n)
  const isThere = async () => (await there.copiesOf([id]))[0]?.kind === "whole"
  return { put, isThere, down, hints, sends: () => sends }
}

describe("a small put in a cluster", () => {
  it("is sent to others before this disk has it, and responds when all have", async () => {
    const { promise: synced, resolve: sync } = Promise.withResolvers<void>()
    const nodes = twoNodes(async (answer) => {
      await synced
      return answer
    })
    let answered: PutResult | undefined
    const put = nodes.put().then((answer) => {
      answered = answer
    })
    await expect.poll(nodes.isThere, { timeout: 10_000 }).toBe(true)
    expect(answered).toBeUndefined()
    sync()
    await put
    expect(answered?.durable_on).toEqual(["n1", "n2"])
    expect(nodes.sends()).toBe(1)
  })

  it("fails if this disk does, regardless of other copies", async () => {
    const detail = "A write could not be made durable."
    const nodes = twoNodes(() => Promise.reject(faultError({ _tag: "BlobStoreReadOnly", detail })))
    expect(await faultIn(nodes.put())).toBe("BlobStoreReadOnly")
  })

  it("is stored if a copy could not be sent, which is hinted at once", async () => {
    const nodes = twoNodes((answer) => Promise.resolve(answer))
    nodes.down.add("n2")
    expect((await nodes.put()).durable_on).toEqual(["n1"])
    expect(nodes.hints).toEqual([
      expect.objectContaining({ id, why: "replication", nodes: ["n2"] }),
    ])
    expect(nodes.sends()).toBe(1)
  })
})
