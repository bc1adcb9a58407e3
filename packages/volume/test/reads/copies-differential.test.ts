/** A volume and an engine in memory respond alike to the same random requests. */
import assert from "node:assert/strict"
import { Struct } from "effect"
import fc from "fast-check"
import { it } from "vitest"
import { faultOf } from "#actors/blob-storage/ports/fault.ts"
import type { NodeEngine } from "#actors/blob-storage/ports/node-engine.ts"
import { memoryEngine } from "#adapters/blob-storage/memory/engine.ts"
import { noise } from "../../../../test/contract/blob-storage/engine-bytes.ts"
import {
  idOf,
  origin,
  putOrder,
  readAll,
  send,
  sendShard,
  shardOf,
  wholeOf,
} from "../../../../test/contract/blob-storage/node-engine-copies.ts"
import { freshFolder, opened } from "../opened.ts"

const sizes = [0, 300, 20_000, 100_000]
const blobs = sizes.map((size, n) => noise(n, size))

/** On a busy machine, in milliseconds. */
const timeout_ms = 300_000

const time = fc.bigInt({ min: 1n, max: 400n })
const blob = fc.nat(blobs.length - 1)
const index = fc.nat(2)
const step = fc.oneof(
  fc.record({ kind: fc.constant("put" as const), blob, at: time, with_policy: fc.boolean() }),
  fc.record({ kind: fc.constant("whole" as const), blob, at: time, made_at: time }),
  fc.record({ kind: fc.constant("shard" as const), blob, at: time, made_at: time, index }),
  fc.record({ kind: fc.constant("delete" as const), blob, at: time }),
  fc.record({ kind: fc.constant("deleteClusterWide" as const), blob, at: time }),
  fc.record({ kind: fc.constant("release" as const), blob, at: time, is_late: fc.boolean() }),
  fc.record({ kind: fc.constant("renew" as const), blob, at: time, put_at: time }),
  fc.record({ kind: fc.constant("read" as const), blob, at: time }),
)
type Step = typeof step extends fc.Arbitrary<infer A> ? A : never

const release = async (engine: NodeEngine, one: Step & { kind: "release" }) => {
  const id = idOf(blobs[one.blob] ?? assert.fail())
  const [copy] = await engine.copiesOf([id])
  if (copy === undefined || copy.kind === "tombstone") return engine.release(id, 0n, one.at)
  return engine.release(id, one.is_late ? copy.stored_at - 1n : copy.stored_at, one.at)
}

const work = async (engine: NodeEngine, one: Step): Promise<unknown> => {
  const bytes = blobs[one.blob] ?? assert.fail()
  const id = idOf(bytes)
  switch (one.kind) {
    case "put": {
      const policy = one.with_policy ? putOrder.policy : "REPLICATION_POLICY_UNSPECIFIED"
      return engine.put({ ...putOrder, policy }, [bytes], one.at)
    }
    case "whole":
      return send(engine, wholeOf(bytes, { created_at: one.made_at }), bytes, one.at)
    case "shard": {
      const shard = { index: one.index, data_shards: 4 }
      return sendShard(engine, shardOf(bytes, shard, { created_at: one.made_at }), one.at)
    }
    case "delete":
      return engine.delete(id, origin, one.at)
    case "deleteClusterWide":
      return engine.deleteClusterWide(id, origin, one.at)
    case "release":
      return release(engine, one)
    case "renew":
      return engine.renew(id, one.put_at, one.at)
    case "read":
      return readAll(engine, id)
  }
}

/** The outcome of the step, with the state afterwards. */
const outcomeOf = async (engine: NodeEngine, one: Step) => {
  const answer = await work(engine, one).catch((cause: unknown) => faultOf(cause))
  return {
    answer,
    page: await engine.copies("", "", 10),
    usage: Struct.omit(await engine.usage(), ["capacity_bytes", "used_bytes"]),
    facts: await engine.scan(0, 1000),
    tombstones: await Promise.all(blobs.map((bytes) => engine.tombstone(idOf(bytes)))),
  }
}

it(
  "a volume and a store in memory respond alike to any work",
  async () => {
    const holds = async (steps: ReadonlyArray<Step>) => {
      const memory = memoryEngine({ capacity_bytes: 2 ** 40 })
      const volume = await opened(freshFolder(), { clock: () => 0n })
      try {
        for (const one of steps)
          assert.deepEqual(await outcomeOf(volume, one), await outcomeOf(memory, one))
      } finally {
        await volume.close()
      }
    }
    await fc.assert(fc.asyncProperty(fc.array(step, { minLength: 1, maxLength: 40 }), holds), {
      numRuns: 40,
    })
  },
  timeout_ms,
)
