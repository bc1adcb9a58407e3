/** What tests of a cluster ask of its nodes while some of them are away. */
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
 * Puts until it is stored: on a machine that does many things at once, nodes that are there may say
 * nothing for as long as anybody waits.
 */
export const store = async (client: Client, bytes: Uint8Array, policy: string) => {
  await until(`a put under ${policy}`, whole_ms_max, async () => {
    return (await putAs(client, bytes, policy)).status === 200
  })
  return hashed(bytes).id
}

/** Reads the whole blob, asking again as a client does where nodes are silent. */
export const reads = async (client: Client, id: string, bytes: Uint8Array) => {
  const body = await until(`a get of ${id}`, whole_ms_max, async () => {
    const answer = await getRaw(client, id)
    expect([200, 503]).toContain(answer.status)
    return answer.status === 200 && answer.body
  })
  expect(body.equals(bytes)).toBe(true)
}

/** Waits until so many nodes have a shard of it, some of which repair may have made. */
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

/** Nobody reaches it, and where it is to be noticed it does not reach the log. */
export const away = (world: World, nodes: ReadonlyArray<WorldNode>, is_noticed: boolean) => {
  for (const node of nodes) {
    node.gate.shut()
    if (is_noticed) world.cutFromLog(node)
  }
}

interface Put {
  readonly receipt: { readonly durable_on: ReadonlyArray<string> }
}

/** A node that could not be reached is tried again half a second later only: until all were. */
export const untilReached = (world: World, { client }: WorldNode) => {
  let seed = 1000
  return until("a put to reach all", whole_ms_max, async () => {
    const answer = await putAs(client, noise(seed++, 10), world.nodes.length < 10 ? "EC42" : "EC82")
    if (answer.status !== 200) return false
    const { receipt }: Put = JSON.parse(answer.body.toString())
    return receipt.durable_on.length === Math.min(world.nodes.length, 10)
  })
}

/** What is done while these are away; then they are back, and everybody who is asked knows it. */
export const during = async (
  world: World,
  gone: ReadonlyArray<WorldNode>,
  asked: ReadonlyArray<WorldNode>,
  meanwhile: () => Promise<void>,
) => {
  try {
    await meanwhile()
  } finally {
    world.heal()
    for (const { gate } of gone) gate.open()
  }
  await untilActive(world)
  await Promise.all(asked.map((node) => untilReached(world, node)))
}
