/** A call to a thread: what is answered, what is refused, and when the thread goes. */
import { spawnSync } from "node:child_process"
import { setImmediate as turn } from "node:timers/promises"
import { afterEach, describe, expect, it } from "vitest"
import { type ThreadCall, type ThreadCallOptions, threadCall } from "../call.ts"

const tested = new URL("../call.ts", import.meta.url).href

const programOf = (text: string) => {
  const script = `import { answerCalls } from "${tested}"\n${text}`
  return new URL(`data:text/javascript,${encodeURIComponent(script)}`)
}

/** Answers a number by its double, and how many it has answered; "throw" and "die" as they say. */
const doubling = `
  let answered = 0
  answerCalls((question) => {
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

/** The message of each that is rejected, or the answer. */
const settled = async (asked: ReadonlyArray<Promise<unknown>>) =>
  (await Promise.allSettled(asked)).map((one) =>
    one.status === "fulfilled" ? one.value : one.reason.message,
  )

describe("a call to a thread", () => {
  it("is answered in the order of questions, a refusal where one was thrown", async () => {
    const { ask } = start()
    const asked = settled([ask(1), ask("throw"), ask(3), ask(4)])
    expect(await asked).toEqual([[2, 1], "not this one", [6, 2], [8, 3]])
  })

  it("that cannot be said is refused, and those beside it are answered", async () => {
    const call = threadCall<unknown, unknown>({ name: "It", program: programOf(doubling) })
    const [first, second, third] = await settled([
      call.ask(1),
      call.ask(() => undefined),
      call.ask(2),
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
    ["hang", "The thread said nothing for 1500 ms"],
  ] as const)(
    "to a thread that does %s is refused, and the next thread answers",
    async (how, why) => {
      const { ask } = start({ answer_ms_max: 1500 })
      expect(await ask(1)).toEqual([2, 1])
      expect(await settled([ask(how), ask(2)])).toEqual([why, why])
      expect(await ask(3)).toEqual([6, 1])
    },
  )

  it("to a thread that fails by itself is refused with its cause", async () => {
    const { ask } = start({
      program: programOf('answerCalls(() => 1); throw new Error("by itself")'),
    })
    const failure = await ask(1).catch((error: unknown) => error)
    expect(failure).toMatchObject({
      message: "The thread failed: by itself",
      cause: { message: "by itself" },
    })
  })

  it("is refused where its thread is ended meanwhile, and a later one starts another", async () => {
    const { ask, end } = start()
    const waiting = settled([ask("hang"), ask(1)])
    await turn()
    await end()
    expect(await waiting).toEqual(["The thread was ended", "The thread was ended"])
    expect(await ask(1)).toEqual([2, 1])
  })

  it("keeps its process alive while it is open, and no longer", () => {
    const program = JSON.stringify(programOf(doubling).href)
    const script = `
      import { threadCall } from ${JSON.stringify(tested)}
      const { ask } = threadCall({ name: "It", program: new URL(${program}) })
      ask(1).then((answer) => console.log(JSON.stringify(answer)))`
    const { stdout, status } = spawnSync(process.execPath, ["--input-type=module", "-e", script], {
      encoding: "utf8",
      timeout: 30_000,
    })
    expect([stdout.trim(), status]).toEqual(["[2,1]", 0])
  })
})
