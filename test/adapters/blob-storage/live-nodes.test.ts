import { assert, describe, it } from "@effect/vitest"
import { Context, Effect, Layer } from "effect"
import { LiveNodes } from "#actors/blob-storage/ports/live-nodes.ts"
import { natsLiveNodes } from "#adapters/blob-storage/nats-live-nodes.ts"
import { NatsConnection } from "#bus"
import { NodeId } from "#schemas/blob-storage/node.ts"
import { promises } from "../../contract/blob-storage/live-nodes.ts"
import { describeNats } from "../../world/programs/nats.ts"

describe("LiveNodes in memory", () => {
  for (const [sentence, promise] of Object.entries(promises)) {
    it.live(sentence, () => Effect.provide(promise, LiveNodes.memory, { local: true }))
  }
})

/** Polls the condition every 5 ms, for at most 5 s. */
const until = (holds: () => boolean) =>
  Effect.suspend(() => (holds() ? Effect.void : Effect.fail("not yet"))).pipe(
    Effect.delay(5),
    Effect.retry({ times: 1000 }),
    Effect.orDie,
  )

const node_id = NodeId.make("node-1")
const values = { node_id, used_bytes: 2n ** 64n - 1n, blob_count: 3n }

/** The listener of one process. */
const process = (cluster: string) =>
  Effect.map(Layer.build(Layer.fresh(natsLiveNodes(cluster))), (context) =>
    Context.get(context, LiveNodes),
  )

describeNats("LiveNodes over NATS", (it) => {
  for (const [sentence, promise] of Object.entries(promises)) {
    it.effect(sentence, () => Effect.provide(promise, natsLiveNodes("almanac"), { local: true }))
  }

  it.effect("notifies every process of its cluster, and of no other", () =>
    Effect.gen(function* () {
      const one = yield* process("almanac")
      const other = yield* process("almanac")
      const foreign = yield* process("elsewhere")
      yield* one.publish(values)
      yield* until(() => other.find(node_id) !== undefined)
      assert.equal(other.find(node_id)?.used_bytes, values.used_bytes)
      yield* other.publish({ ...values, node_id: NodeId.make("node-2") })
      yield* until(() => one.find("node-2") !== undefined)
      assert.isUndefined(foreign.find(node_id))
    }),
  )

  it.effect("passes over what is no heartbeat", () =>
    Effect.gen(function* () {
      const one = yield* process("almanac")
      const { connection } = yield* NatsConnection
      const subject = "live.blob-storage.node.node-1"
      for (const text of ["", "{}", "null", '{"cluster":"almanac","node_id":"a.b"}']) {
        connection.publish(subject, text)
      }
      connection.publish(subject, "x".repeat(10_000))
      const other = yield* process("almanac")
      yield* other.publish(values)
      yield* until(() => one.find(node_id) !== undefined)
    }),
  )
})
