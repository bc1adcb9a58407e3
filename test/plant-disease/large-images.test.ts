/** Memory use of large images, and the limit per caller: decision 0186. */
import { spawnSync } from "node:child_process"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect, Fiber } from "effect"
import { PixelsInFlight, pixelBudget } from "#gateway/budget.ts"
import type { Caller } from "#gateway/caller.ts"
import { withPixels } from "#gateway/plant-disease/pixel-budget.ts"
import { RequestContext } from "#gateway/request-context.ts"
import { pixelsOf } from "#schemas/plant-disease/image-size.ts"
import { imageOf } from "./predicting.ts"

/** If each of four threads kept the pixels of an image, it would be 588 MB. */
const kept_bytes_max = 300 * 2 ** 20

describe("images of 7000 by 7000", () => {
  it("release their memory after their prediction", () => {
    const child = join(import.meta.dirname, "hold-large-images.ts")
    const { stdout, stderr } = spawnSync(process.execPath, [child], { encoding: "utf8" })
    assert.isNotEmpty(stdout, stderr)
    const { before, after } = JSON.parse(stdout)
    assert.isBelow(after - before, kept_bytes_max)
  }, 60_000)
})

describe("the pixels of an image", () => {
  it("are read from the heads of PNG, JPEG and progressive JPEG", async () => {
    const image = imageOf("red", 320, 200)
    const all = await Promise.all([
      image.clone().png().toBuffer(),
      image.clone().jpeg().toBuffer(),
      image.clone().jpeg({ progressive: true }).toBuffer(),
    ])
    assert.deepEqual(all.map(pixelsOf), [64_000, 64_000, 64_000])
  })

  it("are none where a head is cut off, or is none", async () => {
    const png = await imageOf("red").png().toBuffer()
    const jpeg = await imageOf("red").jpeg().toBuffer()
    for (const whole of [png, jpeg]) {
      for (let length = 0; length < 24; length++)
        assert.equal(pixelsOf(whole.subarray(0, length)), 0)
    }
    assert.equal(pixelsOf(new Uint8Array(100).fill(0xff)), 0)
    assert.equal(pixelsOf(new TextEncoder().encode("GIF89a, and more of it than a head has")), 0)
  })
})

const anonymous: Caller = {
  actor: "anonymous",
  kind: "noauth",
  scopes: new Set(),
  roles: new Set(),
}
const operator: Caller = { ...anonymous, actor: "op", kind: "static", roles: new Set(["admin"]) }

const from = (address: string, caller = anonymous) =>
  Effect.provideService(RequestContext, {
    caller,
    address,
    request_id: "r",
    correlation_id: "c",
    command_id: "k",
  })

describe("the budget of pixels", () => {
  it.effect("leaves others half of it, and operators one more image", () =>
    Effect.gen(function* () {
      const image = Uint8Array.from(
        yield* Effect.promise(() => imageOf("red", 100, 100).png().toBuffer()),
      )
      const gate = yield* Deferred.make<void>()
      const look = () => Deferred.await(gate)
      const ask = (...who: Parameters<typeof from>) => withPixels(image, look).pipe(from(...who))
      const refused = (...who: Parameters<typeof from>) =>
        Effect.map(Effect.flip(ask(...who)), ({ _tag, detail }) => [_tag, /^Your/.test(detail)])
      const begin = (count: number, address: string) =>
        Effect.forEach(Array.from({ length: count }), () =>
          Effect.forkChild(ask(address), { startImmediately: true }),
        )
      const held = [...(yield* begin(8, "192.0.2.1")), ...(yield* begin(7, "192.0.2.2"))]
      assert.deepEqual(yield* refused("192.0.2.1"), ["Busy", true])
      assert.deepEqual(yield* refused("192.0.2.3"), ["Busy", false])
      held.push(yield* Effect.forkChild(ask("192.0.2.3", operator), { startImmediately: true }))
      yield* Deferred.succeed(gate, undefined)
      yield* Effect.forEach(held, (fiber) => Fiber.join(fiber))
      yield* ask("192.0.2.1")
    }).pipe(Effect.provideService(PixelsInFlight, pixelBudget(10_000))),
  )
})
