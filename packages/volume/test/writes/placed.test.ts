/** Who is told of a put while its batch is being written. Source: decision 0126. */
import { describe, expect, it } from "vitest"
import type { PutAnswer } from "#actors/blob-storage/blobs/engine.ts"
import { faultOf } from "#actors/blob-storage/blobs/fault.ts"
import { noise } from "../../../../test/contract/blob-storage/engine-bytes.ts"
import { kib, order, withVolume } from "../volume-folder.ts"

const bytes = noise(1, 4 * kib)

describe("a small put", () => {
  it("is told while it syncs, once, and with the words of its answer", () =>
    withVolume(async ({ engine, hooks }) => {
      const steps: Array<string> = []
      let told: PutAnswer | undefined
      const { promise: synced, resolve: sync } = Promise.withResolvers<void>()
      hooks.datasync = async () => {
        await synced
        steps.push("durable")
      }
      const { promise: placed, resolve: place } = Promise.withResolvers<void>()
      const put = engine.put(order, [bytes], 5n, (answer) => {
        steps.push("placed")
        told = answer
        place()
      })
      await placed
      sync()
      expect(await put).toEqual(told)
      expect(steps).toEqual(["placed", "durable"])
    }))

  it("is not told where it is a repetition, or refused", () =>
    withVolume(async ({ engine }) => {
      await engine.put(order, [bytes], 5n)
      const told: Array<PutAnswer> = []
      const hear = (answer: PutAnswer) => void told.push(answer)
      expect((await engine.put(order, [bytes], 6n, hear)).created).toBe(false)
      const refused = await engine
        .put({ ...order, if_none_match: true }, [bytes], 7n, hear)
        .catch((cause: unknown) => faultOf(cause)._tag)
      expect(refused).toBe("BlobAlreadyExists")
      expect(told).toEqual([])
    }))

  it("fails with its disk, though somebody was told", () =>
    withVolume(async ({ engine, hooks }) => {
      let told = 0
      hooks.datasync = () => Promise.reject(new Error("the disk is gone"))
      const put = engine.put(order, [bytes], 5n, () => {
        told += 1
      })
      expect(await put.catch((cause: unknown) => faultOf(cause)._tag)).toBe("BlobStoreReadOnly")
      expect(told).toBe(1)
    }))
})
