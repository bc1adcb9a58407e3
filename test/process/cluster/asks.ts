/** Requests that cluster tests send while some nodes are offline. */
import { expect } from "vitest"
import { noise } from "../../contract/blob-storage/engine-bytes.ts"
import { hashed } from "../../world/server/blob-client.ts"
import type { Answer, Client } from "../../world/server/client.ts"
import { countCopies, getRaw, putAs } from "../../world/server/cluster-run.ts"
import {
  untilActive,
  type World,
  type WorldNode,
  whole_ms_max,
} from "../../world/server/cluster-world.ts"
import { until } from "../../world/server/server.ts"

export const timeout_ms = 600_000
export const nowhere = "0123456789abcdef0123456789abcdef"

export const bodyOf = ({ status, body }: Answer) => ({ status, ...JSON.parse(body.toString()) })

/**
 * Puts until the blob is stored: on a busy machine, running nodes may stay silent past the timeout.
 */
export const store = async (client: Client, bytes: Uint8Array, policy: string) => {
  await until(`a put under ${policy}`, whole_ms_max, async () => {
    return (await putAs(client, bytes, policy)).status === 200
  })
  return hashed(bytes).id
}

/** Reads the whole blob; retries as a client does when nodes are silent. */
export const reads = async (client: Client, id: string, bytes: Uint8Array) => {
  const body = await until(`a get of ${id}`, whole_ms_max, async () => {
    const answer = await getRaw(client, id)
    expect([200, 503]).toContain(answer.status)
    return answer.status === 200 && answer.body
  })
  expect(body.equals(bytes)).toBe(true)
}

/** Waits until this many nodes have a shard of the blob, including shards that repair created. */
export const untilShards = (world: World, id: string, count: number) =>
  until(`${count} shards of ${id}`, whole_ms_max, async () => {
    return (await countCopies(world.clients(), id)) === count
  })

export const nth = (world: World, number: number): WorldNode => {
  const node = world.nodes[number - 1]
  if (node === undefined) throw new Error(`there is no node ${number}`)
  return node
}

export const tooFew = (have: number, need: number) => ({
  status: 412,
  code: "FAILED_PRECONDITION",
  message: "not enough nodes for EC",
  detail: `not enough nodes for EC (have ${have}, need ${need})`,
})

/** Makes the nodes unreachable; if it should be noticed, also cuts them off from the log. */
export const away = (world: World, nodes: ReadonlyArray<WorldNode>, is_noticed: boolean) => {
  for (const node of nodes) {
    node.gate.shut()
    if (is_noticed) world.cutFromLog(node)
  }
}

interface Put {
  readonly receipt: { readonly durable_on: ReadonlyArray<string> }
}

/** Waits until a put reaches all nodes: an unreachable node is retried only half a second later. */
export const untilReached = (world: World, { client }: WorldNode) => {
  let seed = 1000
  return until("a put to reach all", whole_ms_max, async () => {
    const answer = await putAs(client, noise(seed++, 10), world.nodes.length < 10 ? "EC42" : "EC82")
    if (answer.status !== 200) return false
    const { receipt }: Put = JSON.parse(answer.body.toString())
    return receipt.durable_on.length === Math.min(world.nodes.length, 10)
  })
}

/**
 * Runs the function while these nodes are offline, and then waits until all queried nodes reach
 * them again.
 */
export const during = async (
  world: World,
  gone: ReadonlyArray<WorldNode>,
  nodes: ReadonlyArray<WorldNode>,
  meanwhile: () => Promise<void>,
) => {
  try {
    await meanwhile()
  } finally {
    world.heal()
    for (const { gate } of gone) gate.open()
  }
  await untilActive(world)
  await Promise.all(nodes.map((node) => untilReached(world, node)))
}
