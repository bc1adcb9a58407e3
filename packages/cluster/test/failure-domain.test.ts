/** Copies of blobs on nodes that share hosts. Source: decision 0164. */
import fc from "fast-check"
import { describe, expect, it } from "vitest"
import type { Members } from "#actors/blob-storage/ports/peers.ts"
import { copiesInOne, domainsOf, hostOf, placement, sharesOf } from "#placement"
import { BlobId, type ReplicationPolicy } from "#schemas/blob-storage/blob.ts"
import { receiversOf } from "../replicas/parts.ts"

describe("a node's host", () => {
  it.each([
    ["10.0.0.7:9797", "10.0.0.7"],
    ["Storage-1.example:80", "storage-1.example"],
    ["[2001:DB8::7]:9797", "[2001:db8::7]"],
    ["[::1]:1", "[::1]"],
  ])("of %s is %s", (address, host) => {
    expect(hostOf(address)).toBe(host)
  })
})

describe("failure domains", () => {
  it("are the hosts, and a node without one has its own", () => {
    const { domain_of, sizes } = domainsOf(["a", "b", undefined, "a", undefined])
    expect(domain_of).toEqual([0, 1, 2, 0, 3])
    expect(sizes).toEqual([2, 1, 1, 1])
  })

  it.each([
    [["a", "b", "c"], 3, 1],
    [["a", "a", "b"], 2, 1],
    [["a", "a", "b"], 3, 2],
    [["a", "a", "a", "a", "b", "b"], 6, 4],
    [["a", "a", "a", "b", "b", "b"], 6, 3],
    [["a", "a"], 9, 2],
  ])("of %j have of %i copies at most %i each", (hosts, copies, most) => {
    expect(copiesInOne(domainsOf(hosts), copies)).toBe(most)
  })

  it("divide all copies by weight, with no more than one per node", () => {
    const node = fc.record({ host: fc.constantFrom("a", "b", "c"), weight: fc.integer({ min: 1 }) })
    fc.assert(
      fc.property(
        fc.array(node, { minLength: 1, maxLength: 12 }),
        fc.integer({ min: 1, max: 12 }),
        (nodes, wanted) => {
          const copies = Math.min(wanted, nodes.length)
          const domains = domainsOf(nodes.map(({ host }) => host))
          const shares = sharesOf(
            domains,
            nodes.map(({ weight }) => weight),
            copies,
          )
          expect(shares.reduce((sum, share) => sum + share, 0)).toBeCloseTo(copies)
          expect(Math.max(...shares)).toBeLessThanOrEqual(1)
          for (const domain of domains.sizes.keys()) {
            const own = shares.filter((_, at) => domains.domain_of[at] === domain)
            const most = copiesInOne(domains, copies)
            expect(own.reduce((sum, share) => sum + share, 0)).toBeLessThanOrEqual(most + 1e-9)
          }
        },
      ),
    )
  })

  it("of equal weight and size have equal shares", () => {
    const domains = domainsOf(["a", "a", "b", "b"])
    expect(sharesOf(domains, [1, 1, 1, 1], 2)).toEqual([0.5, 0.5, 0.5, 0.5])
    expect(sharesOf(domains, [3, 1, 1, 1], 1)).toEqual([3 / 6, 1 / 6, 1 / 6, 1 / 6])
    // Its host's share is more than one copy, of which it keeps one; its own share stays.
    expect(sharesOf(domains, [3, 1, 1, 1], 2)).toEqual([0.75, 0.25, 0.5, 0.5])
  })
})

describe("the copies of a put", () => {
  const hosts = ["one", "one", "one", "two", "two", "three"]
  const active = hosts.map((host, at) => ({ node_id: `n${at}`, address: `${host}:${at + 1}` }))
  const hostOfNode = (node_id: string) =>
    hostOf(active.find((peer) => peer.node_id === node_id)?.address ?? "")
  const table = placement({
    ring_version: 1,
    vnodes_per_node: 16,
    nodes: active.map(({ node_id, address }) => ({
      node_id,
      weight_percent: 100,
      host: hostOf(address),
    })),
  })
  const membersOf = (node_id: string): Members => ({
    node_id,
    ring_version: 1,
    active,
    leaving: [],
    is_leaving: false,
    placement: table,
  })
  const ids = Array.from({ length: 64 }, (_, at) =>
    BlobId.make((at * 4).toString(16).padStart(2, "0").padEnd(32, "7")),
  )
  const cases: ReadonlyArray<readonly [ReplicationPolicy, number]> = [
    ["REPLICATION_POLICY_REPLICA2", 2],
    ["REPLICATION_POLICY_REPLICA3", 3],
  ]

  it.each(cases)("are on different hosts from the start: %s", (policy, copies) => {
    for (const { node_id } of active) {
      for (const id of ids) {
        const receivers = receiversOf(membersOf(node_id), policy, id)
        const holders = [node_id, ...receivers.map((peer) => peer.node_id)]
        expect(new Set(holders.map(hostOfNode)).size).toBe(copies)
        expect(holders).toHaveLength(copies)
      }
    }
  })

  it.each(cases)("are on the blob's owners if the receiver is one: %s", (policy, copies) => {
    for (const id of ids) {
      const owners = table.ownersOf(table.partitionOf(id), copies)
      const [receiver = ""] = owners
      const receivers = receiversOf(membersOf(receiver), policy, id)
      expect(receivers.map(({ node_id }) => node_id)).toEqual(owners.slice(1))
    }
  })
})
