// Which commits share a write, and which caller receives which result.
import { assert, describe, it } from "@effect/vitest"
import { JetStreamApiError } from "@nats-io/jetstream"
import { NoRespondersError, TimeoutError } from "@nats-io/transport-node"
import { Result } from "effect"
import type { AppendResult, Encoded } from "#journal"
import { appender, pace, type Write, type WriteMode, writer } from "#journal"

const commit = (stream: string, expected = 0): Encoded => ({
  stream,
  expected,
  bytes: new Uint8Array(10),
})

/** A minimal server: each test checks its writes and decides the position of its last commit. */
const served = (options: {
  mode: WriteMode
  up?: () => boolean
  now?: () => number
  write?: Write
}) => {
  const writes: Array<string> = []
  const answers = new Map<string, string>()
  let position = 0
  const store: Write = async (commits) => Result.succeed(commits.map(() => ++position))
  const write: Write = (commits) => {
    writes.push(commits.map(({ stream }) => stream).join("+"))
    return (options.write ?? store)(commits)
  }
  const append = appender({
    write,
    link: { isUp: options.up ?? (() => true), isClosed: () => false, onChange: () => () => {} },
    pace: { choose: () => options.mode, record: () => {} },
    now: options.now ?? (() => 0),
  })
  const send = (...commits: ReadonlyArray<Encoded>) => {
    const name = commits.map(({ stream }) => stream).join("+")
    let settle: () => void = () => {}
    const settled = new Promise<void>((resolve) => {
      settle = resolve
    })
    const withdraw = append(commits, (answer: AppendResult) => {
      answers.set(name, Result.isSuccess(answer) ? answer.success.join() : answer.failure._tag)
      settle()
    })
    return { settled, withdraw }
  }
  return { writes, answers, send }
}

const all = (sent: ReadonlyArray<{ settled: Promise<void> }>) =>
  Promise.all(sent.map(({ settled }) => settled))

const conflict = new JetStreamApiError({ err_code: 10_071, code: 400, description: "wrong" })

describe("group commit", () => {
  it("a lone command is sent at once, alone", async () => {
    const { writes, answers, send } = served({ mode: "batch" })
    const sent = send(commit("a"))
    assert.deepEqual(writes, ["a"])
    await sent.settled
    assert.strictEqual(answers.get("a"), "1")
  })

  it("what gathers meanwhile goes together, and each hears its own positions", async () => {
    const { writes, answers, send } = served({ mode: "batch" })
    await all([
      send(commit("a")),
      send(commit("b")),
      send(commit("c"), commit("d")),
      send(commit("e")),
    ])
    assert.deepEqual(writes, ["a", "b+c+d+e"])
    assert.deepEqual(Object.fromEntries(answers), { a: "1", b: "2", "c+d": "3,4", e: "5" })
  })

  it("where that costs less each goes alone, but the commits of a command stay one", async () => {
    const { writes, send } = served({ mode: "alone" })
    await all([send(commit("a")), send(commit("b")), send(commit("c"))])
    assert.deepEqual(writes, ["a", "b", "c"])
    await all([send(commit("d"), commit("e"))])
    assert.deepEqual(writes, ["a", "b", "c", "d+e"])
  })

  it("two commands of one stream never travel together, and keep their order", async () => {
    const { writes, send } = served({ mode: "batch" })
    await all([
      send(commit("x")),
      send(commit("a", 7)),
      send(commit("a", 8), commit("b", 7)),
      send(commit("b", 8)),
      send(commit("c")),
    ])
    assert.deepEqual(writes, ["x", "a+c", "a+b", "b"])
  })

  it("who expects less than was just written has lost without being sent", async () => {
    const { writes, answers, send } = served({ mode: "batch" })
    await all([send(commit("a")), send(commit("a"), commit("b"))])
    assert.deepEqual(writes, ["a"])
    assert.strictEqual(answers.get("a+b"), "VersionConflict")
  })

  it("after the refusal of a group each command tries alone", async () => {
    let position = 0
    const { writes, answers, send } = served({
      mode: "batch",
      write: async (commits) =>
        commits.some(({ stream }) => stream === "stale")
          ? Result.fail(conflict)
          : Result.succeed(commits.map(() => ++position)),
    })
    await all([
      send(commit("x")),
      send(commit("a")),
      send(commit("stale")),
      send(commit("b"), commit("c")),
    ])
    assert.deepEqual(writes, ["x", "a+stale+b+c", "a", "stale", "b+c"])
    assert.deepEqual(Object.fromEntries(answers), {
      x: "1",
      a: "2",
      stale: "VersionConflict",
      "b+c": "3,4",
    })
  })

  it("a group without an answer is unknown for all, and is not sent again", async () => {
    const { writes, answers, send } = served({
      mode: "batch",
      write: async (commits) =>
        commits.length > 1 ? Result.fail(new TimeoutError()) : Result.succeed([1]),
    })
    await all([send(commit("x")), send(commit("a")), send(commit("b"))])
    assert.deepEqual(writes, ["x", "a+b"])
    assert.deepEqual([answers.get("a"), answers.get("b")], ["OutcomeUnknown", "OutcomeUnknown"])
  })

  for (const [what, cause] of [
    ["no responders", new NoRespondersError("commit.a")],
    [
      "a cluster has no leader",
      new JetStreamApiError({ code: 503, err_code: 10_008, description: "unavailable" }),
    ],
  ] as const) {
    it(`while ${what} it tries again, and gives up in the end`, async () => {
      let time = 0
      const { writes, answers, send } = served({
        mode: "batch",
        now: () => (time += 500),
        write: async () => Result.fail(cause),
      })
      await all([send(commit("a")), send(commit("b"))])
      assert.isAbove(writes.filter((write) => write.split("+").includes("a")).length, 1)
      assert.deepEqual([answers.get("a"), answers.get("b")], ["LogUnavailable", "LogUnavailable"])
    })
  }

  it("without a connection nothing is sent, and all of it once there is one", async () => {
    let up = false
    const { writes, send } = served({ mode: "batch", up: () => up })
    const sent = [send(commit("a")), send(commit("b")), send(commit("c"))]
    assert.deepEqual(writes, [])
    sent[1]?.withdraw()
    up = true
    await all([sent[0], sent[2]].filter((one) => one !== undefined))
    assert.deepEqual(writes, ["a+c"])
  })

  it("the queue is bounded", async () => {
    let up = false
    const { answers, send } = served({ mode: "batch", up: () => up })
    const sent = Array.from({ length: 10_000 }, (_, i) => send(commit(`s${i}`)))
    send(commit("one-too-many"))
    assert.strictEqual(answers.get("one-too-many"), "LogUnavailable")
    up = true
    await all(sent)
    assert.strictEqual(answers.get("s9999"), "10000")
  })
})

describe("the pace of writing", () => {
  const cost = { alone: (n: number) => 0.2 + 0.3 * n, batch: () => 3 }
  const run = (size: number, rounds: number, costs: typeof cost) => {
    const { choose, record } = pace()
    const modes: Array<WriteMode> = []
    for (let i = 0; i < rounds; i++) {
      const mode = choose(size)
      modes.push(mode)
      record(size, mode, costs[mode](size))
    }
    return modes
  }
  const share = (modes: ReadonlyArray<WriteMode>, mode: WriteMode) =>
    modes.filter((one) => one === mode).length / modes.length

  it("writes few alone and many together", () => {
    assert.strictEqual(pace().choose(1), "alone")
    assert.strictEqual(pace().choose(4), "alone")
    assert.strictEqual(pace().choose(64), "batch")
  })

  it("finds the cheaper mode when the disk is another, and probes little", () => {
    const fast = { alone: (n: number) => 0.02 * n, batch: () => 3 }
    const modes = run(64, 3_000, fast)
    assert.isAbove(share(modes.slice(-500), "alone"), 0.97)
    const slow = { alone: (n: number) => 5 * n, batch: () => 8 }
    assert.isAbove(share(run(4, 3_000, slow).slice(-500), "batch"), 0.97)
    assert.isAbove(share(run(64, 1_000, cost), "batch"), 0.97)
  })

  it("is not turned by one stall", () => {
    const { choose, record } = pace()
    for (let i = 0; i < 50; i++) record(64, "batch", 4)
    record(64, "batch", 900)
    assert.strictEqual(choose(64), "batch")
  })
})

describe("a write", () => {
  it("fails where what answers is no JetStream, and rejects never", async () => {
    const nonsense = { json: () => JSON.parse("nonsense") }
    const nobody = { publish: () => assert.fail("it is no part of a batch") }
    const write = writer(nobody, async () => nonsense, { stream: "LOG", head: "commit" })
    const written = await write([commit("a")])
    assert.isTrue(Result.isFailure(written))
  })
})
