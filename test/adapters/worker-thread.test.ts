/** The threads that answer requests for blobs, as the process's own thread keeps them. */
import assert from "node:assert/strict"
import { join } from "node:path"
import { setTimeout as pause } from "node:timers/promises"
import { Effect } from "effect"
import { describe, expect, it, onTestFinished, vi } from "vitest"
import { known_ms, workerCallers } from "#adapters/blob-storage/worker/callers.ts"
import type { WorkerStart } from "#adapters/blob-storage/worker/message.ts"
import { type WorkerThreadOptions, workerThread } from "#adapters/blob-storage/worker/thread.ts"
import type { Caller } from "#gateway/caller.ts"
import { freshFolder, opened } from "../../packages/volume/test/opened.ts"
import { settingsWith } from "../http.ts"

const settings = settingsWith()

const program = join(import.meta.dirname, "hold-worker.mjs")

const callerOf = (actor: string): Caller => ({
  actor,
  kind: "static",
  scopes: new Set(["blobs:read"]),
  roles: new Set(),
})

/** Starts a thread that behaves in that way; `changed` is what the settings are from then on. */
const started = async (way: string, changes: Partial<WorkerThreadOptions> = {}) => {
  const engine = await opened(freshFolder(), { is_shared: true })
  const { sharing } = engine
  assert(sharing)
  const connections = new Int32Array(new SharedArrayBuffer(8))
  const said: Array<string> = []
  const problems: Array<string> = []
  const start: Omit<WorkerStart, "engine" | "volume" | "settings"> = {
    // What that program does.
    node_id: way,
    host: "127.0.0.1",
    port: 0,
    socket_path: "",
    connections,
    place: 1,
    connections_max: 10,
    connections_spare: 1,
  }
  const thread = workerThread({
    program,
    start,
    settings: () => settings,
    desk: { engine, sharing, active_nodes: () => 1, report: () => undefined },
    who: async () => undefined,
    measured: (answers) => said.push(...answers.map(([word]) => word)),
    report: (problem) => problems.push(problem),
    ...changes,
  })
  onTestFinished(thread.kill)
  return { thread, said, problems, connections }
}

describe("a thread that answers", () => {
  it("is told who shows a token, and of settings that changed, before", async () => {
    let current = settings
    const { thread, said } = await started("asks", {
      settings: () => current,
      who: async (token) => {
        assert.equal(token, "t")
        return callerOf("reader")
      },
    })
    await thread.started
    await vi.waitFor(() => expect(said).toEqual(["caller reader"]))
    current = settingsWith({ log: { level: "error" } })
    thread.retire()
    const told = ["caller reader", "retire", "settings", "caller reader"]
    await vi.waitFor(() => expect(said).toEqual(told))
  })

  it("is told of nobody where that cannot be found out, which is reported", async () => {
    const { thread, said, problems } = await started("asks", {
      who: async () => {
        throw new Error("no route")
      },
    })
    await thread.started
    await vi.waitFor(() => expect(said).toEqual(["caller"]))
    expect(problems).toEqual(["Who asks the thread blobs 1 is not known: no route"])
  })

  it("is started again when it died, and its connections count no more", async () => {
    const { thread, problems, connections } = await started("dies later")
    await thread.started
    await vi.waitFor(() => expect(problems.length).toBeGreaterThan(1), 10_000)
    expect(problems[0]).toMatch(/^The thread blobs 1 failed: died by the test/)
    thread.close()
    await thread.ended
    expect(connections[1]).toBe(0)
  })

  it("that never listened fails the start, and is not started again", async () => {
    const { thread, problems } = await started("dies first")
    await expect(thread.started).rejects.toThrow(/cannot listen/)
    await thread.ended
    await pause(1200)
    expect(problems).toHaveLength(1)
  })

  it("ends when it is told to, or is ended", async () => {
    const willing = await started("works")
    await willing.thread.started
    willing.thread.close()
    await willing.thread.ended
    const unwilling = await started("stays")
    await unwilling.thread.started
    unwilling.thread.close()
    const late = pause(100, "late")
    expect(await Promise.race([unwilling.thread.ended, late])).toBe("late")
    await unwilling.thread.kill()
    await unwilling.thread.ended
  })
})

describe("callers in a thread", () => {
  const make = () => {
    const asked: Array<readonly [number, string]> = []
    let now_ms = 1000
    const callers = workerCallers(
      (number, token) => asked.push([number, token]),
      () => now_ms,
    )
    const known = (token: string) =>
      Effect.runSync(
        Effect.match(callers.authenticate({ token: token === "" ? undefined : () => token }), {
          onFailure: ({ _tag }) => _tag,
          onSuccess: ({ actor }) => actor,
        }),
      )
    return {
      callers,
      asked,
      known,
      pass: (ms: number) => {
        now_ms += ms
      },
    }
  }

  it("are known for a quarter of a second, from when that was told", () => {
    const { callers, asked, known, pass } = make()
    let times = 0
    const then = () => {
      times += 1
    }
    callers.whenKnown("t", then)
    expect([times, known("t"), asked]).toEqual([0, "Unauthenticated", [[1, "t"]]])
    pass(1000)
    callers.told(1, callerOf("reader"))
    expect([times, known("t")]).toEqual([1, "reader"])
    callers.whenKnown("t", then)
    expect([times, asked.length]).toEqual([2, 1])
    pass(known_ms - 1)
    expect(known("t")).toBe("reader")
    pass(1)
    expect(known("t")).toBe("Unauthenticated")
    callers.whenKnown("t", then)
    expect([times, asked.length]).toEqual([2, 2])
  })

  it("are unknown as soon as that is said, and of nobody else", () => {
    const { callers, known } = make()
    callers.whenKnown("t", () => undefined)
    callers.whenKnown("", () => undefined)
    callers.told(2, callerOf("everyone"))
    callers.told(1, undefined)
    expect([known("t"), known(""), known("u")]).toEqual([
      "Unauthenticated",
      "everyone",
      "Unauthenticated",
    ])
    expect(known_ms).toBe(250)
  })

  it("are ten thousand at most", () => {
    const { callers, asked, known } = make()
    for (let n = 0; n <= 10_000; n++) {
      callers.whenKnown(`t${n}`, () => undefined)
      callers.told(asked.length, callerOf(`c${n}`))
    }
    expect([known("t0"), known("t1"), known("t10000")]).toEqual(["Unauthenticated", "c1", "c10000"])
  })
})
