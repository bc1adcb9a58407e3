import { spawnSync } from "node:child_process"
import { describe, expect, it } from "vitest"
import { nodeFlags } from "../../launcher/node-flags.mjs"

describe("how Node is started for a verb", () => {
  it("gives a verb that ends soon a nursery that this Node takes", () => {
    const flags = nodeFlags("ingest")
    expect(flags.length).toBeGreaterThan(0)
    const { status, stderr } = spawnSync(process.execPath, [...flags, "-e", "0"])
    expect(stderr.toString()).toBe("")
    expect(status).toBe(0)
  })

  it("starts what runs for long, and no verb at all, as Node does", () => {
    expect(["serve", "agent", undefined].flatMap(nodeFlags)).toEqual([])
  })
})
