/**
 * The nodes that each policy requires. Source: document 1 §2, §8; DECISIONS, replica count.
 */
import { describe, expect, it } from "vitest"
import { shortfallChange, underReplicated } from "#actors/blob-storage/volume.ts"
import { nodes_needed, refusedPolicy } from "#schemas/blob-storage/replication.ts"

describe("a policy", () => {
  it("is refused only where it is an erasure code, for want of nodes", () => {
    for (const policy of Object.keys(nodes_needed) as ReadonlyArray<keyof typeof nodes_needed>) {
      for (let active = 1; active <= 11; active++) {
        const is_refused = policy.includes("_EC") && active < nodes_needed[policy]
        const code = is_refused ? "FAILED_PRECONDITION" : undefined
        expect([policy, active, refusedPolicy(policy, active)?.code]).toEqual([
          policy,
          active,
          code,
        ])
      }
    }
    expect(refusedPolicy("REPLICATION_POLICY_EC82", 9)).toMatchObject({
      code: "FAILED_PRECONDITION",
      message: "not enough nodes for EC",
      detail: "not enough nodes for EC (have 9, need 10)",
    })
  })
})

describe("a node's blobs", () => {
  const blobs = {
    REPLICATION_POLICY_NONE: 1,
    REPLICATION_POLICY_REPLICA2: 10,
    REPLICATION_POLICY_REPLICA3: 100,
    REPLICATION_POLICY_UNSPECIFIED: 1000,
    REPLICATION_POLICY_EC42: 10_000,
  }

  it("are under-replicated where their policy needs more nodes than are active", () => {
    const counts = [1, 2, 3, 5, 6].map((active) => underReplicated(blobs, active))
    expect(counts).toEqual([11_110, 11_100, 10_000, 10_000, 0])
    expect(underReplicated({}, 1)).toBe(0)
  })

  it("are a fact when they begin or cease to be, and not while they are", () => {
    expect(shortfallChange(false, 0)).toBeUndefined()
    expect(shortfallChange(false, 1)).toBe("began")
    expect(shortfallChange(true, 500)).toBeUndefined()
    expect(shortfallChange(true, 0)).toBe("ended")
  })
})
