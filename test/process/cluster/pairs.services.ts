/**
 * Six real processes with each pair of them offline: puts and reads under an erasure code before
 * the cluster detects it, and while both are known to be offline.
 *
 * Source: document 1 §7, §8; DECISIONS, document 1.
 */
import { afterAll, beforeAll, expect, it } from "vitest"
import { noise } from "../../contract/blob-storage/engine-bytes.ts"
import { describeWithServer } from "../../world/programs/nats.ts"
import { hashed } from "../../world/server/blob-client.ts"
import { getRaw, putAs } from "../../world/server/cluster-run.ts"
import { startWorld, untilActive, untilSeen, type World } from "../../world/server/cluster-world.ts"
import { cleanUp } from "../../world/server/server.ts"
import {
  away,
  bodyOf,
  during,
  nowhere,
  nth,
  reads,
  store,
  timeout_ms,
  tooFew,
  untilShards,
} from "./asks.ts"

afterAll(cleanUp)

describeWithServer("six nodes, of which two are offline", () => {
  let world: World
  beforeAll(async () => {
    world = await startWorld({ count: 6, deadline_s: 6 })
    await untilActive(world)
  }, timeout_ms)
  afterAll(() => world?.stop(), timeout_ms)

  for (const one of [1, 2, 3, 4, 5, 6]) {
    for (const other of [1, 2, 3, 4, 5, 6].slice(one)) {
      it(
        `take and give under EC42 without ${one} and ${other}, until they are offline`,
        async () => {
          const gone = [nth(world, one), nth(world, other)]
          const [first, ...others] = world.nodes.filter((node) => !gone.includes(node))
          const last = others.at(-1)
          if (!(first && last)) throw new Error("no node is left")
          const bytes = Buffer.concat([Buffer.from(`${one} ${other}`), noise(one, 700_000)])
          const before = Buffer.concat([Buffer.from("before"), bytes])
          await untilShards(world, await store(first.client, before, "EC42"), 6)

          await during(world, gone, world.nodes, async () => {
            away(world, gone, false)
            await store(first.client, bytes, "EC42")
            away(world, gone, true)
            for (const all of [before, bytes]) {
              await reads(last.client, hashed(all).id, all)
            }
            for (const { node_id } of gone) await untilSeen(last.client, node_id, "offline")
            const refused = await putAs(last.client, noise(9, 10), "EC42")
            expect(bodyOf(refused)).toMatchObject(tooFew(4, 6))
            for (const all of [before, bytes]) {
              await reads(first.client, hashed(all).id, all)
            }
          })
        },
        timeout_ms,
      )
    }
  }

  it(
    "say 503, and not 404, of shards whose others are away with three nodes",
    async () => {
      const bytes = noise(5, 50_000)
      const { id } = hashed(bytes)
      await untilShards(world, await store(nth(world, 1).client, bytes, "EC42"), 6)
      const gone = [4, 5, 6].map((number) => nth(world, number))
      const { client } = nth(world, 1)
      await during(world, gone, [nth(world, 1)], async () => {
        away(world, gone, true)
        for (const { node_id } of gone) await untilSeen(client, node_id, "offline")
        const { status, detail } = bodyOf(await getRaw(client, id))
        const found = "3 of its shards were found; 3 nodes do not respond."
        expect([status, detail]).toEqual([503, found])
        const were = "offline and not queried: node-4, node-5, node-6"
        const absent = { status: 404, detail: `No node has the blob ${nowhere}; ${were}.` }
        expect(bodyOf(await getRaw(client, nowhere))).toMatchObject(absent)
      })
      await reads(client, id, bytes)
    },
    timeout_ms,
  )
})
