import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { TestClock } from "effect/testing"
import { deadlines } from "#gateway/door/deadlines.ts"
import { Transport } from "#gateway/transport.ts"

const unused = () => assert.fail("It is not asked for this.")

const idle = { is_read: true, bytes: 0, received_bytes: 0, is_held_up: false, is_taken: true }

/** A transport with idle connections and bodies that were read completely. */
const still = Transport.of({
  newId: unused,
  idOf: unused,
  certificateOf: unused,
  addressOf: unused,
  hasten: unused,
  progressOf: () => idle,
})

describe("deadlines", () => {
  it.effect("end a request though another cannot be ended", () =>
    Effect.gen(function* () {
      const { add } = yield* Effect.provideService(
        deadlines(() => ({ deadline_s: 1, body_bytes_per_s_min: 0 })),
        Transport,
        still,
      )
      const ended: Array<string> = []
      const kind = { source: {}, is_streamed: false, is_unhurried: false, giveUp: unused }
      const interrupt = (name: string) => () => void ended.push(name)
      add({
        ...kind,
        interrupt: () => {
          throw new Error("It cannot be ended.")
        },
      })
      yield* TestClock.adjust("2 seconds")
      add({ ...kind, interrupt: interrupt("later") })
      yield* TestClock.adjust("2 seconds")
      assert.include(ended, "later")
    }),
  )

  /** A body that arrives at `rate` bytes a second; returns how and after how long it ended. */
  const ended = (
    rate: number,
    { is_streamed = false, held_up_s = 0, limit_s = 3600 } = {},
    rules = { deadline_s: 60, body_bytes_per_s_min: 1000 },
  ) =>
    Effect.gen(function* () {
      let seconds = 0
      let end: number | undefined
      const progressOf = () => {
        const bytes = Math.max(0, seconds - held_up_s) * rate
        const is_held_up = seconds <= held_up_s
        // While this process delays the body, bytes still move in the other direction.
        const moved = bytes + (is_held_up ? seconds : 0)
        return { ...idle, is_read: false, bytes: moved, received_bytes: bytes, is_held_up }
      }
      const { add } = yield* Effect.provideService(
        deadlines(() => rules),
        Transport,
        Transport.of({ ...still, progressOf }),
      )
      const finish = () => {
        end ??= seconds
      }
      const kind = { source: {}, is_streamed, is_unhurried: false }
      const request = add({ ...kind, interrupt: finish, giveUp: finish })
      for (; seconds < limit_s && end === undefined; seconds++) yield* TestClock.adjust("1 second")
      return { is_slow: request.is_slow, after_s: end }
    }).pipe(Effect.scoped)

  it.effect("end a body that drips soon after one that stops", () =>
    Effect.gen(function* () {
      const { is_slow, after_s = 0 } = yield* ended(1)
      assert.isTrue(is_slow)
      assert.isAtMost(after_s, 62)
      const stopped = yield* ended(0)
      assert.isFalse(stopped.is_slow)
    }),
  )

  it.effect("grow with what came: half as fast as asked for has twice the time", () =>
    Effect.gen(function* () {
      const { is_slow, after_s = 0 } = yield* ended(500)
      assert.isTrue(is_slow)
      assert.isAtLeast(after_s, 115)
      assert.isAtMost(after_s, 122)
    }),
  )

  it.effect("end no fast stream, and any other body after ten times their length", () =>
    Effect.gen(function* () {
      assert.isUndefined((yield* ended(1000, { is_streamed: true })).after_s)
      const { is_slow, after_s = 0 } = yield* ended(1000)
      assert.isTrue(is_slow)
      assert.isAtLeast(after_s, 598)
      assert.isAtMost(after_s, 602)
      const off = { deadline_s: 60, body_bytes_per_s_min: 0 }
      assert.isUndefined((yield* ended(1, { is_streamed: true }, off)).after_s)
    }),
  )

  it.effect("do not count the time for which this process took nothing", () =>
    Effect.gen(function* () {
      const { is_slow, after_s = 0 } = yield* ended(1, { is_streamed: true, held_up_s: 300 })
      assert.isTrue(is_slow)
      assert.isAtLeast(after_s, 355)
      assert.isAtMost(after_s, 365)
    }),
  )
})
