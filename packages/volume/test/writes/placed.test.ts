/**
 * The `placed` callback of a put, called while its batch is being written. Source: decision 0126.
 */
import { describe, expect, it } from "vitest"
import type { PutResult } from "#actors/blob-storage/ports/engine.ts"
import { faultOf } from "#actors/blob-storage/ports/fault.ts"
import { noise } from "../../../../test/contract/blob-storage/engine-bytes.ts"
import { kib, order, withVolume } from "../volume-folder.ts"

const bytes = noise(1, 4 * kib)

describe("a small put", () => {
  it("calls it during the sync, once, with the eventual response", () =>
    withVolume(async ({ engine, hooks }) => {
      const steps: Array<string> = []
      let reported: PutResult | undefined
      const { promise: synced, resolve: sync } = Promise.withResolvers<void>()
      hooks.datasync = async () => {
        await synced
        steps.push("durable")
      }
      const { promise: placed, resolve: place } = Promise.withResolvers<void>()
      const put = engine.put(order, [bytes], 5n, (answer) => {
        steps.push("placed")
        reported = answer
        place()
      })
      await placed
      sync()
      expect(await put).toEqual(reported)
      expect(steps).toEqual(["placed", "durable"])
    }))

  it("does not call it for a duplicate or a refusal", () =>
    withVolume(async ({ engine }) => {
      await engine.put(order, [bytes], 5n)
      const reported: Array<PutResult> = []
      const onPlaced = (answer: PutResult) => void reported.push(answer)
      expect((await engine.put(order, [bytes], 6n, onPlaced)).created).toBe(false)
      const refused = await engine
        .put({ ...order, if_none_match: true }, [bytes], 7n, onPlaced)
        .catch((cause: unknown) => faultOf(cause)._tag)
      expect(refused).toBe("BlobAlreadyExists")
      expect(reported).toEqual([])
    }))

  it("fails with its disk, even after the call", () =>
    withVolume(async ({ engine, hooks }) => {
      let calls = 0
      hooks.datasync = () => Promise.reject(new Error("the disk is gone"))
      const put = engine.put(order, [bytes], 5n, () => {
        calls += 1
      })
      expect(await put.catch((cause: unknown) => faultOf(cause)._tag)).toBe("BlobStoreReadOnly")
      expect(calls).toBe(1)
    }))
})
