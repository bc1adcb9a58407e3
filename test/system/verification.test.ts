import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer, Stream } from "effect"
import { address, Commands } from "#actors/commands.ts"
import { host } from "#actors/host.ts"
import { runProcess } from "#actors/process.ts"
import { Checkpoint, checkpoint_stream } from "#actors/system/checkpoint.ts"
import { checkpointer } from "#actors/system/checkpointer.ts"
import { verify } from "#actors/system/verification.ts"
import { Log, type Recorded } from "#events/log.ts"
import { logMemory, sha256 } from "#journal"
import type { Fault } from "#schemas/system/audit.ts"
import { Close, Count, Counter } from "../world/counter.ts"
import { changed, tamperedLog } from "../world/system/tampered-log.ts"

const deciders = [Counter, Checkpoint]
const commits_made = 40

/** A log of two counters with a checkpoint after about every ten commits. */
const written: Effect.Effect<ReadonlyArray<Recorded>> = Effect.gen(function* () {
  const commands = yield* Commands
  const log = yield* Log
  yield* Effect.forkScoped(runProcess(checkpointer({ commits: 10, seconds: 3600 })))
  const send = (i: number, id: string, command: typeof Count.Type | typeof Close.Type) =>
    commands.send(
      { command_id: `command-${i}`, actor: "test", at: new Date(0).toISOString() },
      address(Counter, id, command),
    )
  for (let i = 0; i < commits_made; i++) {
    yield* Effect.orDie(send(i, i % 3 === 0 ? "a" : "b", Count.make({ by: i + 1 })))
    for (let step = 0; step < 20; step++) yield* Effect.yieldNow
  }
  yield* Effect.orDie(send(commits_made, "a", Close.make({})))
  return yield* Effect.orDie(Stream.runCollect(log.read("")))
}).pipe(Effect.scoped, Effect.provide(Layer.fresh(Layer.provideMerge(host, logMemory))))

const check = (commits: ReadonlyArray<Recorded>, faults_max = 100) =>
  Effect.provide(verify({ deciders, faults_max }), tamperedLog(commits))

/** The log after `change` replaced one commit, the nth of its stream, with others. */
const tampered = Effect.fnUntraced(function* (
  stream: string,
  nth: number,
  change: (recorded: Recorded) => ReadonlyArray<Recorded>,
) {
  const commits = yield* written
  const target = commits.filter((one) => one.stream === stream)[nth]
  if (target === undefined) throw new Error(`${stream} has no commit ${nth}.`)
  const found = yield* check(commits.flatMap((one) => (one === target ? change(one) : [one])))
  return { target, found, commits }
})

const kinds = (faults: ReadonlyArray<Fault>) => [...new Set(faults.map(({ kind }) => kind))]
const ofKind = (faults: ReadonlyArray<Fault>, kind: Fault["kind"]) =>
  faults.find((fault) => fault.kind === kind)

describe("a whole log", () => {
  it.effect("has no faults, and is summarized in numbers", () =>
    Effect.gen(function* () {
      const commits = yield* written
      const found = yield* check(commits)
      assert.deepEqual(found.faults, [])
      assert.equal(found.commits, commits.length)
      assert.equal(found.position, commits.length)
      assert.equal(found.streams, 3)
      assert.equal(found.folded, commits.length)
      assert.isAtLeast(found.checkpoints, 3)
      assert.isAbove(found.unsealed, 0)
      assert.equal((yield* check(commits)).root, found.root)
    }),
  )

  it.effect("always has the same root up to a position", () =>
    Effect.gen(function* () {
      const commits = yield* written
      const until = 25
      const then = yield* check(commits.slice(0, until))
      const later = yield* Effect.provide(verify({ deciders, until }), tamperedLog(commits))
      assert.deepEqual([later.position, later.root], [until, then.root])
      assert.deepEqual(later, then)
    }),
  )

  it.effect("gives the same result if few states fit in memory", () =>
    Effect.gen(function* () {
      const commits = yield* written
      const few = (log: ReadonlyArray<Recorded>) =>
        Effect.provide(verify({ deciders, held_bytes_max: 1 }), tamperedLog(log))
      assert.deepEqual(yield* few(commits), yield* check(commits))
      const snapshot = { machine: 1, value: "open", context: { total: 1, due: null } }
      const wrong = commits.map((one) => (one.position === 12 ? changed(one, { snapshot }) : one))
      const { faults } = yield* few(wrong)
      const found = faults.filter(({ kind }) => kind === "snapshot")
      assert.equal(found[0]?.position, 12)
    }),
  )

  it.effect("may be empty", () =>
    Effect.gen(function* () {
      const found = yield* check([])
      assert.deepEqual([found.commits, found.fault_count], [0, 0])
    }),
  )

  it.effect("reports its progress", () =>
    Effect.gen(function* () {
      const commits = yield* written
      const seen: Array<readonly [number, number]> = []
      const onProgress = (position: number, head: number) =>
        Effect.sync(() => void seen.push([position, head]))
      yield* Effect.provide(verify({ deciders, onProgress }), tamperedLog(commits))
      assert.deepEqual(seen.at(-1), [commits.length, commits.length])
    }),
  )

  it.effect("may have snapshots of unknown kinds", () =>
    Effect.gen(function* () {
      const commits = yield* written
      const found = yield* Effect.provide(verify({ deciders: [] }), tamperedLog(commits))
      assert.deepEqual(found.faults, [])
      assert.equal(found.folded, found.checkpoints)
    }),
  )
})

describe("a tampered log", () => {
  it.effect("reveals a changed event", () =>
    Effect.gen(function* () {
      const { target, found, commits } = yield* tampered("test.counter.b", 5, (one) => [
        changed(one, { events: [{ type: "Counted", by: 999 } as { type: string }] }),
      ])
      const snapshot = ofKind(found.faults, "snapshot")
      assert.equal(snapshot?.position, target.position)
      assert.equal(snapshot?.stream, "test.counter.b")
      const next = commits.find(
        (one) => one.stream === target.stream && one.position > target.position,
      )
      const chain = ofKind(found.faults, "chain")
      assert.equal(chain?.position, next?.position)
      assert.include(chain?.expected, `the commit at ${target.position}`)
      assert.include(chain?.found, target.hash)
      assert.equal(ofKind(found.faults, "checkpoint")?.stream, checkpoint_stream)
      // One cause yields one fault of each kind: later commits are not reported.
      assert.equal(found.fault_count, 3)
    }),
  )

  it.effect("reveals a changed snapshot", () =>
    Effect.gen(function* () {
      const { target, found } = yield* tampered("test.counter.b", 5, (one) => [
        changed(one, {
          snapshot: { ...one.commit.snapshot, context: { total: 1_000, due: null } },
        }),
      ])
      const snapshot = ofKind(found.faults, "snapshot")
      assert.equal(snapshot?.position, target.position)
      assert.include(snapshot?.found, '"total":1000')
      assert.notInclude(snapshot?.expected, '"total":1000')
      assert.sameMembers(kinds(found.faults), ["snapshot", "chain", "checkpoint"])
    }),
  )

  it.effect("reveals an event without a transition", () =>
    Effect.gen(function* () {
      const { target, found } = yield* tampered("test.counter.a", 3, (one) => [
        changed(one, { events: [{ type: "Exploded" }] }),
      ])
      const snapshot = ofKind(found.faults, "snapshot")
      assert.equal(snapshot?.position, target.position)
      assert.equal(snapshot?.expected, "Exploded can happen")
    }),
  )

  it.effect("detects a changed actor in a commit", () =>
    Effect.gen(function* () {
      const { target, found } = yield* tampered("test.counter.a", 3, (one) => [
        changed(one, { actor: "somebody else" }),
      ])
      assert.sameMembers(kinds(found.faults), ["chain", "checkpoint"])
      assert.include(ofKind(found.faults, "chain")?.expected, `at ${target.position}`)
    }),
  )

  it.effect("reveals a first commit with a predecessor", () =>
    Effect.gen(function* () {
      const { found } = yield* tampered("test.counter.b", 0, (one) => [
        changed(one, { prev: "f".repeat(64) }),
      ])
      const chain = ofKind(found.faults, "chain")
      assert.equal(chain?.expected, `prev ${sha256("test.counter.b")}, no commit before`)
      assert.equal(chain?.found, `prev ${"f".repeat(64)}`)
    }),
  )

  it.effect("reveals a missing commit", () =>
    Effect.gen(function* () {
      const { target, found } = yield* tampered("test.counter.b", 5, () => [])
      const gap = ofKind(found.faults, "gap")
      assert.equal(gap?.expected, `position ${target.position}`)
      const { position } = target
      assert.equal(gap?.found, `position ${position + 1}: ${position} missing`)
      assert.sameMembers(kinds(found.faults), ["gap", "chain", "snapshot", "checkpoint"])
    }),
  )

  it.effect("reports a missing range as one fault", () =>
    Effect.gen(function* () {
      const commits = yield* written
      const found = yield* check(commits.filter(({ position }) => position < 5 || position > 9))
      const gaps = found.faults.filter(({ kind }) => kind === "gap")
      assert.equal(gaps.length, 1)
      assert.include(gaps[0]?.found, "5 to 9 missing")
    }),
  )

  it.effect("reveals a missing commit whose position later commits have taken", () =>
    Effect.gen(function* () {
      const commits = yield* written
      const closed_up = commits
        .filter((_, i) => i !== 4)
        .map((one, i) => ({ ...one, position: i + 1 }))
      const { faults } = yield* check(closed_up)
      assert.include(kinds(faults), "chain")
      assert.include(kinds(faults), "checkpoint")
    }),
  )

  it.effect("reveals swapped commits", () =>
    Effect.gen(function* () {
      const commits = yield* written
      const [one, other] = commits.filter(({ stream }) => stream === "test.counter.b").slice(2, 4)
      if (one === undefined || other === undefined) throw new Error("too few commits")
      const swapped = commits.map((each) => {
        if (each === one) return { ...other, position: one.position }
        return each === other ? { ...one, position: other.position } : each
      })
      const { faults } = yield* check(swapped)
      const chain = faults.filter(({ kind }) => kind === "chain").map(({ position }) => position)
      assert.deepInclude(chain, one.position)
      assert.deepInclude(chain, other.position)
      assert.include(kinds(faults), "checkpoint")
    }),
  )

  it.effect("detects swapped commits of two streams, which no chain covers", () =>
    Effect.gen(function* () {
      const commits = yield* written
      const [a, b] = ["test.counter.a", "test.counter.b"].map(
        (name) => commits.filter(({ stream }) => stream === name)[0],
      )
      if (a === undefined || b === undefined) throw new Error("too few commits")
      const swapped = commits.map((each) => {
        if (each === a) return { ...b, position: a.position }
        return each === b ? { ...a, position: b.position } : each
      })
      const { faults } = yield* check(swapped)
      assert.deepEqual(kinds(faults), ["checkpoint"])
    }),
  )

  it.effect("reveals a repeated position", () =>
    Effect.gen(function* () {
      const { target, found } = yield* tampered("test.counter.b", 3, (one) => [one, one])
      const order = ofKind(found.faults, "order")
      assert.equal(order?.position, target.position)
      assert.equal(order?.expected, `position ${target.position + 1}`)
      assert.equal(order?.found, `position ${target.position} again`)
    }),
  )

  it.effect("reveals an old commit among newer ones, and no gap after it", () =>
    Effect.gen(function* () {
      const commits = yield* written
      const [first] = commits
      const { found } = yield* tampered("test.counter.b", 6, (one) => [one, first ?? one])
      const order = ofKind(found.faults, "order")
      assert.deepEqual([order?.position, order?.found], [1, "position 1 again"])
      assert.notInclude(kinds(found.faults), "gap")
    }),
  )

  it.effect("reveals a command that was executed twice", () =>
    Effect.gen(function* () {
      const { target, found } = yield* tampered("test.counter.b", 3, (one) => [
        changed(one, { commands: ["command-1", ...one.commit.commands] }),
      ])
      const commands = ofKind(found.faults, "commands")
      assert.equal(commands?.position, target.position)
      assert.equal(commands?.expected, "each command once")
      assert.equal(commands?.found, "command-1 twice")
    }),
  )

  it.effect("reveals too many or no command ids", () =>
    Effect.gen(function* () {
      const many = Array.from({ length: 65 }, (_, i) => `id-${i}`)
      for (const commands of [many, []]) {
        const { found } = yield* tampered("test.counter.b", 3, (one) => [
          changed(one, { commands }),
        ])
        const fault = ofKind(found.faults, "commands")
        assert.equal(fault?.expected, "1 to 64 command ids")
        assert.equal(fault?.found, String(commands.length))
      }
    }),
  )
})

describe("a forged checkpoint", () => {
  const forge = (change: Readonly<Record<string, unknown>>) =>
    tampered(checkpoint_stream, 1, (one) => [
      changed(one, { events: one.commit.events.map((event) => ({ ...event, ...change })) }),
    ])

  it.effect("is detected by its root, without a fault in the next one", () =>
    Effect.gen(function* () {
      const { target, found } = yield* forge({ root: "f".repeat(64) })
      const faults = found.faults.filter(({ kind }) => kind === "checkpoint")
      assert.equal(faults[0]?.position, target.position)
      assert.include(faults[0]?.found, "f".repeat(64))
      // The next two cover the forged commit itself, so their root differs too: reported once.
      assert.isAtMost(faults.length, 2)
    }),
  )

  it.effect("is detected by its number of commits", () =>
    Effect.gen(function* () {
      const { target, found } = yield* forge({ commits: 3 })
      const fault = ofKind(found.faults, "checkpoint")
      assert.deepEqual([fault?.position, fault?.found], [target.position, "3 commits"])
      assert.match(fault?.expected ?? "", /^\d+ commits from \d+ to \d+$/)
    }),
  )

  it.effect("is detected by its start", () =>
    Effect.gen(function* () {
      const { target, found } = yield* forge({ from: 2 })
      const fault = ofKind(found.faults, "checkpoint")
      assert.deepEqual([fault?.position, fault?.found], [target.position, "from 2"])
      assert.match(fault?.expected ?? "", /^from \d+$/)
    }),
  )

  it.effect("is detected by an end after its own position", () =>
    Effect.gen(function* () {
      const { target, found } = yield* forge({ to: 10_000 })
      const fault = ofKind(found.faults, "checkpoint")
      assert.deepEqual([fault?.position, fault?.found], [target.position, "to 10000"])
      assert.equal(fault?.expected, `an end before ${target.position}`)
    }),
  )

  it.effect("is detected if it is not a valid checkpoint", () =>
    Effect.gen(function* () {
      const { target, found } = yield* forge({ root: "short" })
      assert.equal(ofKind(found.faults, "snapshot")?.position, target.position)
    }),
  )
})

describe("the report", () => {
  it.effect("lists the first faults and counts all of them", () =>
    Effect.gen(function* () {
      const commits = yield* written
      const wrong = commits.map((one) => changed(one, { prev: "wrong" }))
      const found = yield* check(wrong, 5)
      assert.equal(found.faults.length, 5)
      assert.isAtLeast(found.fault_count, commits.length)
    }),
  )
})
