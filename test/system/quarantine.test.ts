/** Commits that no release wrote, in an in-memory log: decision 0189. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer, Stream } from "effect"
import { address, Commands } from "#actors/commands.ts"
import { host } from "#actors/host.ts"
import { Quarantine, quarantine_id } from "#actors/system/acknowledgement.ts"
import { Election } from "#actors/system/election.ts"
import { acknowledge, scanQuarantine } from "#actors/system/quarantine.ts"
import { verify } from "#actors/system/verification.ts"
import { type Commit, CommitJudge, Log } from "#events/log.ts"
import { quarantine_stream, UnreadableAcknowledged } from "#events/system/quarantine.ts"
import { logMemory } from "#journal"
import { AcknowledgeUnreadable } from "#schemas/system/quarantine.ts"
import { deciders, judge } from "#server/aggregate-kinds.ts"
import { given } from "../world/given.ts"

const acknowledgement = (through: number) => ({ through, commits: 1, reason: "known" })
const command = (through: number) => AcknowledgeUnreadable.make(acknowledgement(through))
const event = (through: number) => UnreadableAcknowledged.make(acknowledgement(through))

const at = "2026-11-28T00:00:00.000Z"
const stream = `${Election.name}.one`

/** Published by a script by mistake; the envelope is valid. */
const poison: Commit = {
  v: 1,
  actor: "script",
  at,
  events: [{ type: "Sneezed" }],
  snapshot: { machine: 1, value: "nowhere", context: {} },
  commands: ["by-mistake"],
  prev: "0".repeat(64),
}

const withLog = <A, E>(program: Effect.Effect<A, E, Log | Commands>) =>
  program.pipe(
    Effect.provide(Layer.fresh(Layer.provideMerge(host, logMemory))),
    Effect.provideService(CommitJudge, judge),
  )

/** Publishes an invalid commit after the last one of a stream; returns its position. */
const publish = Effect.fnUntraced(function* (to: string) {
  const log = yield* Log
  const { position = 0 } = (yield* log.tip(to)) ?? {}
  const [appended] = yield* log.append([{ stream: to, expected: position, commit: poison }])
  return appended?.position ?? 0
})

const recorded = Effect.fnUntraced(function* (through: number, command_id: string) {
  const { send } = yield* Commands
  const to = address(Quarantine, quarantine_id, command(through))
  return yield* send({ command_id, actor: "test", at }, to)
})

describe("acknowledgements", () => {
  it("must have rising positions", () => {
    given(Quarantine)().when(command(5)).thenEvents(event(5))
    given(Quarantine)(event(5)).when(command(6)).thenEvents(event(6))
    assert.equal(quarantine_stream, `${Quarantine.name}.${quarantine_id}`)
  })
  it("cannot have an earlier position", () => {
    given(Quarantine)(event(5)).when(command(5)).thenRejected("svc.conflict")
    given(Quarantine)(event(5)).when(command(4)).thenRejected("svc.conflict")
  })
})

describe("a commit that no release wrote", () => {
  it.live("is skipped: its aggregate continues from its last commit", () =>
    withLog(
      Effect.gen(function* () {
        const log = yield* Log
        yield* recorded(3, "first")
        const bad = yield* publish(quarantine_stream)
        assert.equal((yield* log.load(quarantine_stream))?.position, 1)
        assert.equal(yield* log.end, bad)
        assert.equal(yield* recorded(4, "second"), bad + 1)
        const read = yield* Stream.runCollect(log.read(""))
        assert.deepEqual(
          read.map(({ position }) => position),
          [1, bad + 1],
        )
      }),
    ),
  )

  it.effect("is listed, and counts as a fault until it is acknowledged", () =>
    withLog(
      Effect.gen(function* () {
        const positions = [yield* publish(stream), yield* publish(stream)]
        const found = yield* scanQuarantine(1)
        assert.deepEqual([found.count, found.open, found.first.length], [2, 2, 1])
        assert.equal(found.first[0]?.reason, "its snapshot has no holder")
        const faults = (yield* verify({ deciders })).faults
        assert.deepEqual(
          faults.map(({ kind, position }) => [kind, position]),
          positions.map((position) => ["unreadable", position]),
        )

        const origin = { command_id: "known", actor: "test", at }
        const done = yield* acknowledge(origin, "a script of ours")
        assert.deepEqual(done, { through: 2, commits: 2 })
        const after = yield* verify({ deciders })
        assert.deepEqual([after.fault_count, after.acknowledged], [0, 2])
        const again = yield* Effect.flip(acknowledge({ ...origin, command_id: "again" }, "twice"))
        assert.equal(again._tag, "NothingToAcknowledge")

        const later = yield* publish(stream)
        const { open, first } = yield* scanQuarantine(10)
        assert.deepEqual([open, first[0]?.position], [1, later])
        assert.equal((yield* verify({ deciders })).fault_count, 1)
      }),
    ),
  )
})
