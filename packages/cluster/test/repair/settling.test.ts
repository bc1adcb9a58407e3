/** Sweeps while puts may be in progress, and with concurrent client requests. */
import assert from "node:assert/strict"
import { describe, it } from "vitest"
import type { BlobId } from "#schemas/blob-storage/blob.ts"
import { makeSettling } from "../../repair/settling.ts"
import { makeRepairWorld, type RepairWorld, type WorldOptions } from "./world.ts"

// The format of the ids does not matter here.
const id = (n: number) => `${n}` as BlobId
const second_ns = 1_000_000_000n
const settle_s = 11
const names = ["a", "b"]

/** Nodes of which `holders` have a recent blob. The repair of node a has made its first sweep. */
const startRepair = async (holders: ReadonlyArray<string>, options: WorldOptions = {}) => {
  const cluster = makeRepairWorld(names, options)
  const blob = cluster.blob("young", "REPLICATION_POLICY_REPLICA2")
  for (const name of holders) await cluster.give(name, blob)
  const { repairs } = cluster.node("a")
  repairs.start()
  await cluster.sleep(1)
  const first = repairs.progress().last_sweep
  assert.equal(first?.too_new, 1)
  return { cluster, blob, repairs, first }
}

const stopped = ({ world, node }: RepairWorld) => world.until(node("a").repairs.stop())

describe("blobs that are too recent for a sweep", () => {
  it("are inspected again on their own", async () => {
    const { cluster, repairs, first } = await startRepair(names)
    await cluster.sleep(8)
    for (const name of names)
      await cluster.give(name, cluster.blob("later", "REPLICATION_POLICY_REPLICA2"))
    await cluster.sleep(60)
    assert.equal(repairs.progress().last_sweep, first)
    await cluster.sleep(600)
    assert.notEqual(repairs.progress().last_sweep, first)
    await stopped(cluster)
  })
  it("are inspected once more, not repeatedly", async () => {
    const works: Array<number> = []
    const { cluster } = await startRepair(names, { pauseAfter: (took_ms) => works.push(took_ms) })
    await cluster.sleep(60)
    assert.equal(works.length, 1)
    await stopped(cluster)
  })
  it("are repaired as soon as no put can still be storing them", async () => {
    const { cluster, blob, repairs, first } = await startRepair(["a"])
    await cluster.sleep(8)
    assert.deepEqual(await cluster.holders(blob), ["a"])
    await cluster.sleep(3)
    assert.deepEqual(await cluster.holders(blob), names)
    await cluster.sleep(3)
    const { last_sweep } = repairs.progress()
    assert.notEqual(last_sweep, first, "what was found may be part of more")
    assert.equal(last_sweep?.missing, 0)
    await stopped(cluster)
  })
  it("are left to the next sweeps if no node responds", async () => {
    const { cluster, blob } = await startRepair(["a"])
    cluster.network.block("a", "b")
    await cluster.sleep(settle_s)
    assert.deepEqual(await cluster.holders(blob), ["a"])
    cluster.network.heal()
    await cluster.sleep(settle_s)
    assert.deepEqual(await cluster.holders(blob), names)
    await stopped(cluster)
  })
  it("wait in order of discovery until they are due", () => {
    const settling = makeSettling()
    settling.add([id(1), id(2)], 0n)
    settling.add([], 0n)
    settling.add([id(3)], second_ns)
    assert.deepEqual(settling.take(10n * second_ns - 1n), [])
    assert.deepEqual(settling.take(10n * second_ns), [id(1), id(2)])
    assert.deepEqual(settling.take(10n * second_ns), [])
    assert.deepEqual(settling.take(11n * second_ns), [id(3)])
  })
  it("are limited in number, and some are reported as left to a sweep", () => {
    const settling = makeSettling(3)
    settling.add([id(1), id(2)], 0n)
    settling.add([id(3), id(4)], 0n)
    assert.equal(settling.hasLost(), true)
    assert.equal(settling.take(10n * second_ns).length, 2)
    settling.clear()
    assert.equal(settling.hasLost(), false)
    settling.add([id(1), id(2)], 0n)
    assert.equal(settling.take(10n * second_ns).length, 2)
    settling.add([id(1), id(2), id(3)], 0n)
    assert.equal(settling.hasLost(), false)
    settling.clear()
    assert.deepEqual(settling.take(10n * second_ns), [])
  })
})

describe("a sweep with concurrent client requests", () => {
  const rest_ms = 5000
  const page_copies = 256

  /** The duration of node a's next sweep in milliseconds, and the thread time of its pages. */
  const nextSweep = async (cluster: RepairWorld) => {
    const began = cluster.world.ms()
    await cluster.sweep("a")
    return cluster.world.ms() - began
  }
  const resting = async () => {
    const works: Array<number> = []
    const pauseAfter = (took_ms: number) => {
      works.push(took_ms)
      return rest_ms
    }
    const cluster = makeRepairWorld(names, { pauseAfter })
    const blob = cluster.blob("kept", "REPLICATION_POLICY_REPLICA2")
    for (const name of names) await cluster.give(name, blob)
    await cluster.sleep(settle_s)
    return { cluster, works }
  }

  it("pauses in proportion to its thread time, except in the first sweep of a ring", async () => {
    const { cluster, works } = await resting()
    assert.ok((await nextSweep(cluster)) < rest_ms)
    assert.ok((await nextSweep(cluster)) >= rest_ms)
    assert.equal(works.length, 1)
    assert.ok(Math.abs((works[0] ?? 0) - 0.06) < 1e-9, "one copy")
    cluster.setRing({})
    assert.ok((await nextSweep(cluster)) < rest_ms)
    assert.ok((await nextSweep(cluster)) >= rest_ms)
  })
  it("ends without pauses if the ring changes meanwhile", async () => {
    const { cluster, works } = await resting()
    for (let n = 0; n < 3 * page_copies; n++) {
      await cluster.give("a", cluster.blob(`${n}`, "REPLICATION_POLICY_NONE"))
    }
    await cluster.sleep(settle_s)
    await nextSweep(cluster)
    const sweeping = nextSweep(cluster)
    await cluster.sleep(1)
    cluster.setRing({})
    assert.ok((await sweeping) < 2 * rest_ms)
    assert.equal(works.length, 1)
  })
  it("does not pause while it finds work, or while the node leaves", async () => {
    const { cluster, works } = await resting()
    await nextSweep(cluster)
    await cluster.give("a", cluster.blob("lonely", "REPLICATION_POLICY_REPLICA2"))
    await cluster.sleep(settle_s)
    assert.ok((await nextSweep(cluster)) < rest_ms)
    cluster.setRing({ active: ["b"], leaving: ["a"] })
    await nextSweep(cluster)
    await nextSweep(cluster)
    assert.equal(works.length, 0)
  })
})
