/** Requests to a thread: responses, rejections, and the end of the thread. */
import { spawnSync } from "node:child_process"
import { setImmediate as turn } from "node:timers/promises"
import { afterEach, describe, expect, it } from "vitest"
import { type ThreadCall, type ThreadCallOptions, threadCall } from "../call.ts"

const tested = new URL("../call.ts", import.meta.url).href

const programOf = (text: string) => {
  const script = `import { serveCalls } from "${tested}"\n${text}`
  return new URL(`data:text/javascript,${encodeURIComponent(script)}`)
}

/** Responds with twice a number and the count of responses; "throw", "die" and "hang" do that. */
const doubling = `
  let answered = 0
  serveCalls((question) => {
    if (question === "throw") throw new Error("not this one")
    if (question === "die") process.exit(0)
    if (question === "hang") for (;;) {}
    return [question * 2, ++answered]
  })`

type Question = number | "throw" | "die" | "hang"

const calls: Array<ThreadCall<Question, unknown>> = []
afterEach(() => Promise.all(calls.splice(0).map(({ end }) => end())))

const start = (options: Partial<ThreadCallOptions> = {}) => {
  const call = threadCall<Question, unknown>({
    name: "The thread",
    program: programOf(doubling),
    ...options,
  })
  calls.push(call)
  return call
}

/** The message of each rejection, or the response. */
const settled = async (requests: ReadonlyArray<Promise<unknown>>) =>
  (await Promise.allSettled(requests)).map((one) =>
    one.status === "fulfilled" ? one.value : one.reason.message,
  )

describe("a request to a thread", () => {
  it("gets its response in order, or a rejection if the thread throws", async () => {
    const { request } = start()
    const outcomes = settled([request(1), request("throw"), request(3), request(4)])
    expect(await outcomes).toEqual([[2, 1], "not this one", [6, 2], [8, 3]])
  })

  it("that cannot be cloned is rejected, and others get their responses", async () => {
    const call = threadCall<unknown, unknown>({ name: "It", program: programOf(doubling) })
    const [first, second, third] = await settled([
      call.request(1),
      call.request(() => undefined),
      call.request(2),
    ])
    expect([first, third]).toEqual([
      [2, 1],
      [4, 2],
    ])
    expect(second).toMatch(/could not be cloned/)
    await call.end()
  })

  it.each([
    ["die", "The thread ended"],
    ["hang", "The thread did not respond within 1500 ms"],
  ] as const)(
    "to a thread that does %s is rejected, and the next thread responds",
    async (how, why) => {
      const { request } = start({ response_ms_max: 1500 })
      expect(await request(1)).toEqual([2, 1])
      expect(await settled([request(how), request(2)])).toEqual([why, why])
      expect(await request(3)).toEqual([6, 1])
    },
  )

  it("to a thread that fails on its own is rejected with the cause", async () => {
    const { request } = start({
      program: programOf('serveCalls(() => 1); throw new Error("by itself")'),
    })
    const failure = await request(1).catch((error: unknown) => error)
    expect(failure).toMatchObject({
      message: "The thread failed: by itself",
      cause: { message: "by itself" },
    })
  })

  it("is rejected if its thread is ended, and a later one starts another thread", async () => {
    const { request, end } = start()
    const waiting = settled([request("hang"), request(1)])
    await turn()
    await end()
    expect(await waiting).toEqual(["The thread was stopped", "The thread was stopped"])
    expect(await request(1)).toEqual([2, 1])
  })

  it("keeps its process alive while it is pending, and no longer", () => {
    const program = JSON.stringify(programOf(doubling).href)
    const script = `
      import { threadCall } from ${JSON.stringify(tested)}
      const { request } = threadCall({ name: "It", program: new URL(${program}) })
      request(1).then((answer) => console.log(JSON.stringify(answer)))`
    const { stdout, status } = spawnSync(process.execPath, ["--input-type=module", "-e", script], {
      encoding: "utf8",
      timeout: 30_000,
    })
    expect([stdout.trim(), status]).toEqual(["[2,1]", 0])
  })
})
