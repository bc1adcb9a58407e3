/** The assignment of images to threads with a session and threads that only prepare. */
import { setTimeout } from "node:timers/promises"
import { afterAll, describe, expect, it } from "vitest"
import { type Failure, type PredictedImage, type PreparedImage, predictorPool } from "../pool.ts"

const network_threads = 3
/** Enough for threads to start. */
const later_ms = 500
const options = {
  network: {
    onnx_path: "",
    input: { name: "x", layout: "NHWC", has_rescaling: false },
    output: { name: "y", classes: 1, activation: "softmax" },
  },
  program: new URL("./echo-thread.ts", import.meta.url),
  onLost: (why: string) => expect.fail(why),
  batch_max: 4,
  resize: "bicubic",
  scale: "0..1",
  auto_orient: false,
  pixels_max: 100,
} as const
const pool = predictorPool({
  ...options,
  threads: { sessions: 1, session_threads: network_threads, preparers: 2 },
})
const small = predictorPool({
  ...options,
  threads: { sessions: 1, session_threads: 1, preparers: 0 },
})
afterAll(() => Promise.all([pool.end(), small.end()]))

const file = (bytes = 9) => new Uint8Array(bytes)
const predict = (image: Uint8Array) =>
  new Promise<PreparedImage | PredictedImage | Failure>(
    (resolve) => void pool.predict(image, resolve),
  )
const byNetwork = { kind: "predicted", width: network_threads }
const byOthers = { kind: "prepared", width: 0 }

describe("the thread with a large network", () => {
  it("prepares and runs an image that arrives alone", async () => {
    await pool.complete
    expect(await predict(file())).toMatchObject(byNetwork)
    expect(await predict(file())).toMatchObject(byNetwork)
    expect(pool.batches).toEqual([0, 2, 0, 0, 0])
  })

  it("prepares and runs one of several images while others are prepared", async () => {
    const all = await Promise.all([file(), file(), file()].map(predict))
    expect(all).toMatchObject([byNetwork, byOthers, byOthers])
  })

  it("leaves large files to the other threads", async () => {
    expect(await predict(file(256 * 1024 + 1))).toMatchObject(byOthers)
    expect(await predict(file(256 * 1024))).toMatchObject(byNetwork)
  })

  it("is reserved for batches while others prepare", async () => {
    const all = await Promise.all([file(256 * 1024 + 1), file()].map(predict))
    expect(all).toMatchObject([byOthers, byOthers])
  })

  it.each([
    { images: 4, running: 1, waiting: 3 },
    { images: 5, running: 5, waiting: 0 },
    { images: 9, running: 5, waiting: 4 },
  ])(
    "has the next batch queued if that is full: of $images images it has $running",
    async ({ images, running, waiting }) => {
      const results = Array.from({ length: images }, (_, n) => {
        const input = Float32Array.of(n)
        return new Promise((done) => void pool.infer(input, done))
      })
      expect({ running: pool.running(), waiting: pool.waiting() }).toEqual({ running, waiting })
      const rows = results.map((_, n) => Float32Array.of(n))
      expect(await Promise.all(results)).toEqual(rows)
    },
  )

  it("returns the pixels of an image that is only prepared", async () => {
    const prepared = await new Promise((resolve) => void pool.prepare(file(), resolve))
    expect(prepared).toMatchObject({ kind: "prepared", rgb: Uint8Array.of(1, 2, 3) })
  })
})

describe("a thread with a small network", () => {
  const large = file(256 * 1024 + 1)

  /** How many of these files are running and how many wait before any is done. */
  const given = async (...files: ReadonlyArray<Uint8Array>) => {
    await small.started
    const results = files.map((one) => new Promise((resolve) => void small.predict(one, resolve)))
    const counts = { running: small.running(), waiting: small.waiting() }
    await Promise.all(results)
    return counts
  }

  it("has the next image queued while it works on one", async () => {
    expect(await given(file(), file(), file())).toEqual({ running: 2, waiting: 1 })
  })

  it("has no image queued behind a large one, and no large one queued", async () => {
    expect(await given(large.slice(), file())).toEqual({ running: 1, waiting: 1 })
    expect(await given(file(), large.slice())).toEqual({ running: 1, waiting: 1 })
  })

  it("returns results in order", async () => {
    const order: Array<number> = []
    const all = [0, 1, 2, 3].map(
      (n) =>
        new Promise<void>((resolve) => {
          small.predict(file(), () => {
            order.push(n)
            resolve()
          })
        }),
    )
    await Promise.all(all)
    expect(order).toEqual([0, 1, 2, 3])
  })
})

describe("the threads of a small network", () => {
  const running = (made: typeof pool) => {
    const results = Array.from(
      { length: 9 },
      () => new Promise((done) => made.predict(file(), done)),
    )
    const count = made.running()
    return Promise.all(results).then(() => count)
  }

  it("start after the first one is ready, which resolves `started`", async () => {
    const made = predictorPool({
      ...options,
      threads: { sessions: 3, session_threads: 1, preparers: 0 },
    })
    try {
      await made.started
      // One image and the next one queued.
      expect(await running(made)).toBe(2)
      await made.complete
      expect(await running(made)).toBe(6)
    } finally {
      await made.end()
    }
  })

  it("start later if they are delayed; the first one works alone until then", async () => {
    const others = Promise.withResolvers<void>()
    const made = predictorPool({
      ...options,
      threads: { sessions: 3, session_threads: 1, preparers: 0 },
      others: others.promise,
    })
    let is_complete = false
    void made.complete.then(() => {
      is_complete = true
    })
    try {
      await made.started
      expect(await running(made)).toBe(2)
      await setTimeout(later_ms)
      expect(is_complete).toBe(false)
      expect(await running(made)).toBe(2)
      others.resolve()
      await made.complete
      expect(await running(made)).toBe(6)
    } finally {
      await made.end()
    }
  })

  it("never start if the first one fails", async () => {
    const losses: Array<string> = []
    const unfit = predictorPool({
      ...options,
      threads: { sessions: 3, session_threads: 1, preparers: 0 },
      program: new URL("data:text/javascript,process.exit(7)"),
      onLost: (why) => losses.push(why),
    })
    await expect(unfit.started).rejects.toThrow()
    await expect(unfit.complete).rejects.toThrow()
    expect(losses).toHaveLength(1)
    await unfit.end()
  })
})
