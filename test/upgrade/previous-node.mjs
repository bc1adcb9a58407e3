/**
 * A node of the previous release, running in that release's folder: it reports its port, and sends
 * requests to the nodes named on standard input. It prints each result as a line of JSON.
 */
import { once } from "node:events"
import { createServer } from "node:http"
import { createInterface } from "node:readline"
import { blake3 } from "@napi-rs/blake-hash"
import { memoryEngine } from "#adapters/blob-memory-engine.ts"
import { peerAnswers } from "#adapters/peer-answers.ts"
import { peerCalls } from "#adapters/peer-call.ts"
import { isInternal, peerDoor } from "#adapters/peer-door.ts"
import { peersLink } from "#adapters/peers-link.ts"

const secret = "a secret of at least 32 characters"
const local = memoryEngine()
const origin = { actor: "node:old", request_id: "r", correlation_id: "c" }

const say = (what) =>
  console.log(JSON.stringify(what, (_, value) => (typeof value === "bigint" ? `${value}` : value)))

const takeBack = async (id, created_at) => {
  const [copy] = await local.copiesOf([id])
  if (copy?.created_at === created_at) await local.release(id, copy.stored_at, 9n)
}
const answering = peerAnswers({
  store: () => ({
    local,
    guard: { receive: local.receive, copiesOf: local.copiesOf, takeBack },
    keeps: async (ids) => ids.map((_, n) => n === 0),
  }),
  now: () => 1_800_000_000_000_000_001n,
})
const door = peerDoor({ cluster: "almanac", secret, answeringFor: () => answering })
const server = createServer((request, response) => {
  if (isInternal(request.url)) door.request(request, response)
  else response.end()
})
server.on("upgrade", door.upgrade).listen(0, "127.0.0.1")
await once(server, "listening")

const orderOf = (bytes, created_at) => {
  const checksum = blake3(bytes).toString("hex")
  return {
    id: checksum.slice(0, 32),
    checksum,
    size: bytes.length,
    created_at,
    origin,
    policy: "REPLICATION_POLICY_REPLICA2",
    labels: { by: "old" },
    shard: undefined,
  }
}

/** Every request that a node of that release sends to another. */
const askAll = async (address) => {
  const calls = peerCalls({ cluster: "almanac", secret, node_id: "old" })
  const peers = peersLink(calls)
  const peer = { node_id: "new", address }
  const small = Buffer.from("from the release before")
  const large = Buffer.alloc(3_000_000, "large")
  const orders = [orderOf(small, 1000n), orderOf(large, 2000n)]
  const stream = async function* () {
    for (let at = 0; at < large.length; at += 700_000) yield large.subarray(at, at + 700_000)
  }
  const first = await peers.send(peer, orders[0], [small], "put", 5000)
  const second = await peers.send(peer, orders[1], stream(), "migrate", 5000)
  const ids = [...orders.map(({ id }) => id), "0".repeat(32)]
  const had = await peers.have(peer, ids)
  const kept = await peers.keeps(peer, ids, 7)
  const page = await peers.copies(peer, "", "", 10)
  const fetched = await peers.fetch(peer, ids[1], { offset: 1, length: 2_000_000 }, 5000)
  let fetched_bytes = 0
  for await (const piece of fetched.bytes) fetched_bytes += piece.length
  await peers.takeBack(peer, ids[0], 1000n)
  await peers.deleteClusterWide(peer, ids[1], origin, 3000n)
  const after = await peers.have(peer, ids)
  await calls.close()
  return { created: [first.created, second.created], had, kept, page, fetched_bytes, after }
}

say({ port: server.address().port })
for await (const line of createInterface({ input: process.stdin })) {
  const { ask, copies_of } = JSON.parse(line)
  say(ask === undefined ? await local.copiesOf(copies_of) : await askAll(ask))
}
process.exit(0)
