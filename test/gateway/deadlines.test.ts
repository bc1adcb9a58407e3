import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { TestClock } from "effect/testing"
import { deadlines } from "#gateway/deadlines.ts"
import { Transport } from "#gateway/transport.ts"

const unused = () => assert.fail("It is not asked for this.")

/** Nothing moves on its connections, and every body was read. */
const still = Transport.of({
  newId: unused,
  idOf: unused,
  certificateOf: unused,
  addressOf: unused,
  hasten: unused,
  progressOf: () => ({ bytes: 0, is_read: true, is_taken: true }),
})

describe("deadlines", () => {
  it.effect("end a request though another cannot be ended", () =>
    Effect.gen(function* () {
      const { add } = yield* Effect.provideService(
        deadlines(() => 1),
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
})
