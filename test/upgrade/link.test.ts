/** A node of this release and one of the previous release over a real link, in both directions. */
import assert from "node:assert/strict"
import { spawn } from "node:child_process"
import { copyFileSync } from "node:fs"
import { join } from "node:path"
import { createInterface } from "node:readline"
import { afterEach, it } from "vitest"
import type { Copy } from "#actors/blob-storage/ports/node-engine.ts"
import { memoryEngine } from "#adapters/blob-storage/memory/engine.ts"
import { peerCalls } from "#adapters/blob-storage/peer/call.ts"
import { peersLink } from "#adapters/blob-storage/peers/link.ts"
import { noise } from "../contract/blob-storage/engine-bytes.ts"
import {
  all,
  codeOf,
  endAll,
  idOf,
  linked,
  orderOf,
  origin,
  secret,
} from "../world/blob-storage/peers-linked.ts"
import { describePrevious } from "./previous.ts"

const script = "previous-node.mjs"
const ends: Array<() => unknown> = []
afterEach(async () => {
  await endAll()
  for (const end of ends.splice(0)) await end()
})

/** Copies in JSON form, with times as strings. */
type Told = ReadonlyArray<Readonly<Record<string, unknown>> | null>

/** The older node's results after all its requests. */
interface Asked {
  readonly created: ReadonlyArray<boolean>
  readonly had: Told
  readonly kept: ReadonlyArray<boolean>
  readonly page: { readonly copies: Told }
  readonly fetched_bytes: number
  readonly after: Told
}

const startOld = async (place: string) => {
  copyFileSync(join(import.meta.dirname, script), join(place, script))
  const stdio = ["pipe", "pipe", "inherit"] as const
  const child = spawn(process.execPath, [script], { cwd: place, stdio: [...stdio] })
  ends.push(() => child.kill("SIGKILL"))
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]()
  const next = async () => {
    const { value, done } = await lines.next()
    assert(!done, "the older node ended")
    return JSON.parse(value)
  }
  const { port } = await next()
  const ask = (what: unknown) => {
    child.stdin.write(`${JSON.stringify(what)}\n`)
    return next()
  }
  return { address: `127.0.0.1:${port}`, ask }
}

const calling = () => {
  const calls = peerCalls({ cluster: "almanac", secret, node_id: "new" })
  ends.push(calls.close)
  return calls
}

describePrevious("a link to a node of the release before", (place) => {
  it("carries what that release asks, in its own form", async () => {
    const old = await startOld(place())
    const local = memoryEngine()
    const { address } = await linked(local)
    const message: Asked = await old.ask({ ask: address })
    const [small, large] = message.had
    assert.deepEqual(message.created, [true, true])
    assert.deepEqual([small?.created_at, small?.kind, large?.created_at], ["1000", "whole", "2000"])
    assert.deepEqual([message.had[2], message.page.copies.length], [null, 2])
    assert.deepEqual(message.kept, [true, false, true], "of the ring that it named")
    assert.equal(message.fetched_bytes, 2_000_000)
    assert.deepEqual(
      message.after.map((copy) => copy?.kind),
      [undefined, "tombstone", undefined],
    )
  })
  it("sends the time of a blob's last put as the time that it compares", async () => {
    const { address } = await startOld(place())
    const calls = calling()
    const peers = peersLink(calls)
    const old = { node_id: "old", address }
    assert.equal((await calls.to(address)).version, 1)
    const bytes = noise(1, 3_000_000)
    const order = orderOf(bytes, { put_at: 1_700_000_000_500_000_000n })
    const { copy, created } = await peers.send(old, order, [bytes], "put", 5000)
    assert(created)
    assert.deepEqual([copy.created_at, copy.put_at], [order.put_at, order.put_at])
    const isOf = (found: Copy | undefined) => found?.kind === "whole" && found.put_at
    assert.deepEqual((await peers.copiesOf(old, [order.id])).map(isOf), [order.put_at])
    const { copies } = await peers.copies(old, "", "", 10)
    assert.deepEqual(copies.map(isOf), [order.put_at])
    const fetched = await peers.fetch(old, order.id, {}, 5000)
    assert((await all(fetched.bytes)).equals(bytes))
    assert.deepEqual([fetched.meta.labels, fetched.copy.put_at], [order.labels, order.put_at])
  })
  it("counts on nothing that the release before cannot promise", async () => {
    const { address } = await startOld(place())
    const peers = peersLink(calling())
    const old = { node_id: "old", address }
    const bytes = noise(2, 100)
    const order = orderOf(bytes)
    await peers.send(old, order, [bytes], "put", 5000)
    const later = { ...order, put_at: order.created_at + 5n }
    // It keeps the older copy, which a deletion between the two times would remove.
    assert.equal(await codeOf(peers.send(old, later, [bytes], "put", 5000)), "UNAVAILABLE")
    assert.equal(await codeOf(peers.renew(old, order.id, later.put_at, 5000)), "UNAVAILABLE")
    assert.equal(await codeOf(peers.ringVersion(old)), "UNAVAILABLE")
    assert.deepEqual(await peers.keeps(old, [order.id], 7, false), [true])
    assert.deepEqual(await peers.keeps(old, [order.id], 7, true), [false], "it reads nothing")
    await peers.deleteClusterWide(old, order.id, origin, later.put_at)
    const [gone] = await peers.copiesOf(old, [idOf(bytes)])
    assert.equal(gone?.kind, "tombstone")
    assert.equal(await codeOf(peers.send(old, later, [bytes], "put", 5000)), "FAILED_PRECONDITION")
  })
})
