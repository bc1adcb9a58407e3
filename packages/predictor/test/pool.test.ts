/** Which thread has an image, where one has the network and others only prepare for it. */
import { setTimeout } from "node:timers/promises"
import { afterAll, describe, expect, it } from "vitest"
import { type Begun, type Failed, plantPool, type Ran } from "../pool.ts"

const network_threads = 3
/** For threads that answer at once to begin. */
const later_ms = 500
const options = {
  network: {
    onnx_path: "",
    input: { name: "x", layout: "NHWC", has_rescaling: false },
    output: { name: "y", classes: 1, activation: "softmax" },
  },
  program: new URL("./telling-thread.ts", import.meta.url),
  onLost: (why: string) => expect.fail(why),
  batch_max: 4,
  resize: "bicubic",
  scale: "0..1",
  auto_orient: false,
  pixels_max: 100,
} as const
const pool = plantPool({
  ...options,
  threads: { sessions: 1, session_threads: network_threads, preparers: 2 },
})
const small = plantPool({
  ...options,
  threads: { sessions: 1, session_threads: 1, preparers: 0 },
})
afterAll(() => Promise.all([pool.end(), small.end()]))

const file = (bytes = 9) => new Uint8Array(bytes)
const predicted = (image: Uint8Array) =>
  new Promise<Begun | Ran | Failed>((told) => void pool.predict(image, told))
const byNetwork = { kind: "predicted", width: network_threads }
const byOthers = { kind: "prepared", width: 0 }

describe("a large network's thread", () => {
  it("has an image that comes alone, and prepares it too", async () => {
    await pool.complete
    expect(await predicted(file())).toMatchObject(byNetwork)
    expect(await predicted(file())).toMatchObject(byNetwork)
    expect(pool.batches).toEqual([0, 2, 0, 0, 0])
  })

  it("has one of several: the others are prepared meanwhile", async () => {
    const all = await Promise.all([file(), file(), file()].map(predicted))
    expect(all).toMatchObject([byNetwork, byOthers, byOthers])
  })

  it("has no large file, which others decode", async () => {
    expect(await predicted(file(256 * 1024 + 1))).toMatchObject(byOthers)
    expect(await predicted(file(256 * 1024))).toMatchObject(byNetwork)
  })

  it("is left to batches while others prepare", async () => {
    const all = await Promise.all([file(256 * 1024 + 1), file()].map(predicted))
    expect(all).toMatchObject([byOthers, byOthers])
  })

  it.each([
    { images: 4, running: 1, waiting: 3 },
    { images: 5, running: 5, waiting: 0 },
    { images: 9, running: 5, waiting: 4 },
  ])(
    "has the next batch at hand if that is full: of $images images it has $running",
    async ({ images, running, waiting }) => {
      const told = Array.from({ length: images }, (_, n) => {
        const input = Float32Array.of(n)
        return new Promise((done) => void pool.infer(input, done))
      })
      expect({ running: pool.running(), waiting: pool.waiting() }).toEqual({ running, waiting })
      const rows = told.map((_, n) => Float32Array.of(n))
      expect(await Promise.all(told)).toEqual(rows)
    },
  )

  it("hands out the pixels of an image that is only prepared", async () => {
    const prepared = await new Promise((told) => void pool.prepare(file(), told))
    expect(prepared).toMatchObject({ kind: "prepared", rgb: Uint8Array.of(1, 2, 3) })
  })
})

describe("a small network's thread", () => {
  const large = file(256 * 1024 + 1)

  /** How many it has of these, and how many wait, before any is done. */
  const given = async (...files: ReadonlyArray<Uint8Array>) => {
    await small.started
    const answers = files.map((one) => new Promise((told) => void small.predict(one, told)))
    const counts = { running: small.running(), waiting: small.waiting() }
    await Promise.all(answers)
    return counts
  }

  it("has the next image at hand while it works on one", async () => {
    expect(await given(file(), file(), file())).toEqual({ running: 2, waiting: 1 })
  })

  it("has none at hand behind a large one, and no large one", async () => {
    expect(await given(large.slice(), file())).toEqual({ running: 1, waiting: 1 })
    expect(await given(file(), large.slice())).toEqual({ running: 1, waiting: 1 })
  })

  it("answers them in their order", async () => {
    const order: Array<number> = []
    const all = [0, 1, 2, 3].map(
      (n) =>
        new Promise<void>((told) => {
          small.predict(file(), () => {
            order.push(n)
            told()
          })
        }),
    )
    await Promise.all(all)
    expect(order).toEqual([0, 1, 2, 3])
  })
})

describe("the threads of a small network", () => {
  const running = (made: typeof pool) => {
    const told = Array.from({ length: 9 }, () => new Promise((done) => made.predict(file(), done)))
    const count = made.running()
    return Promise.all(told).then(() => count)
  }

  it("begin when the first one works, which is enough to be started", async () => {
    const made = plantPool({
      ...options,
      threads: { sessions: 3, session_threads: 1, preparers: 0 },
    })
    try {
      await made.started
      // One and the next at hand.
      expect(await running(made)).toBe(2)
      await made.complete
      expect(await running(made)).toBe(6)
    } finally {
      await made.end()
    }
  })

  it("begin later where they are told to, and the first one works alone until then", async () => {
    const others = Promise.withResolvers<void>()
    const made = plantPool({
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

  it("never begin where the first one cannot work", async () => {
    const losses: Array<string> = []
    const unfit = plantPool({
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
