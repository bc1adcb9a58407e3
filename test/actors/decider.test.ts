// Compares a chart's decider with XState's own interpreter.
import { assert, describe, it } from "@effect/vitest"
import { Result, Schema } from "effect"
import fc from "fast-check"
import { assign, initialTransition, setup, transition } from "xstate"
import { decider } from "#actors/decider.ts"
import { message } from "#schemas/message.ts"

const Turned = message("Turned", {})
const Pushed = message("Pushed", { by: Schema.Int })
const DoorEvent = Schema.Union([Turned, Pushed])
type DoorEvent = typeof DoorEvent.Type

const Push = message("Push", { by: Schema.Int })
const Force = message("Force", { by: Schema.Int })

class Stuck extends Schema.Error<Stuck>("door.stuck")({ pushed: Schema.Int }) {}

interface Context {
  readonly pushed: number
  readonly opened: number
}

const side_effects: Array<string> = []

/** A chart with guards, entry and exit actions, raised events and transition actions. */
const machine = setup({
  types: { context: {} as Context, events: {} as DoorEvent | { readonly type: "slammed" } },
  actions: { shout: () => side_effects.push("shouted") },
}).createMachine({
  id: "test.door",
  context: { pushed: 0, opened: 0 },
  initial: "shut",
  states: {
    shut: {
      initial: "locked",
      exit: assign(({ context }) => ({ opened: context.opened + 1 })),
      states: {
        locked: { on: { Turned: "unlocked" } },
        unlocked: { on: { Turned: "locked" } },
      },
      on: {
        Pushed: {
          guard: ({ context, event }) => event.by > 0 && context.pushed < 5,
          target: "open",
          actions: [
            "shout",
            assign(({ context, event }) => ({ pushed: context.pushed + event.by })),
          ],
        },
      },
    },
    open: {
      always: { guard: ({ context }) => context.pushed % 3 === 0, target: "shut.unlocked" },
      on: { Pushed: { target: "shut", actions: "shout" } },
    },
  },
})

const Door = decider({
  machine,
  version: 1,
  command: Schema.Union([Push, Force]),
  event: DoorEvent,
  rejection: Stuck,
  propose: {
    Push: ({ by }) => [Pushed.make({ by })],
    Force: ({ by }) => [Pushed.make({ by }), Pushed.make({ by })],
  },
  reject: ({ context }) => new Stuck({ pushed: context.pushed }),
})

const events = fc.array(
  fc.oneof(
    fc.constant(Turned.make({})),
    fc.integer({ min: 0, max: 3 }).map((by) => Pushed.make({ by })),
  ),
  { maxLength: 12 },
)

describe("a decider", () => {
  it("applies events one by one like XState", () => {
    fc.assert(
      fc.property(events, (history) => {
        let ours = Door.initialState
        let [theirs] = initialTransition(machine)
        for (const event of history) {
          if (!theirs.can(event)) {
            assert.throws(() => Door.evolve(ours, event), /cannot happen in this state/)
            continue
          }
          ours = Door.evolve(ours, event)
          theirs = transition(machine, theirs, event)[0]
          assert.deepEqual(ours.toJSON(), theirs.toJSON())
        }
      }),
    )
  })

  it("evolves each state independently of earlier decisions", () => {
    const pushed = Door.evolve(Door.initialState, Pushed.make({ by: 1 }))
    Door.evolve(pushed, Pushed.make({ by: 1 }))
    const again = Door.evolve(Door.initialState, Pushed.make({ by: 1 }))
    assert.deepEqual(again.toJSON(), pushed.toJSON())
    assert.deepEqual(Door.save(Door.initialState).context, { pushed: 0, opened: 0 })
  })

  it("does not run the chart's side effects", () => {
    const open = Door.evolve(Door.initialState, Pushed.make({ by: 1 }))
    Door.evolve(open, Pushed.make({ by: 1 }))
    assert.deepEqual(side_effects, [])
  })

  it("proposes all events of a command or rejects it, and caches the state after it", () => {
    const decided = Result.getOrThrow(Door.decide(Door.initialState, Force.make({ by: 2 })))
    assert.deepEqual(decided, [Pushed.make({ by: 2 }), Pushed.make({ by: 2 })])
    const after = Door.save(Door.after(Door.initialState, decided))
    const context = { pushed: 2, opened: 1 }
    assert.deepEqual(after, { machine: 1, value: { shut: "locked" }, context })
    const refused = Door.decide(Door.initialState, Force.make({ by: 0 }))
    assert.deepEqual(refused, Result.fail(new Stuck({ pushed: 0 })))
  })

  it("evaluates a guard once per event, and accepts events that change nothing", () => {
    let requests = 0
    const chart = setup({
      types: { context: {} as object, events: {} as DoorEvent },
      guards: { is_asked: () => ++requests > 0 },
    }).createMachine({
      id: "test.gate",
      context: {},
      initial: "on",
      states: {
        on: { on: { Pushed: { guard: "is_asked", target: "gone" }, Turned: { target: "on" } } },
        gone: { type: "final" },
      },
    })
    const gate = decider({
      machine: chart,
      version: 1,
      command: Push,
      event: DoorEvent,
      rejection: Stuck,
      propose: { Push: ({ by }) => [Pushed.make({ by })] },
      reject: () => new Stuck({ pushed: 0 }),
    })
    const same = gate.evolve(gate.initialState, Turned.make({}))
    assert.equal(gate.save(same).value, "on")
    const push = Push.make({ by: 1 })
    const gone = gate.after(same, Result.getOrThrow(gate.decide(same, push)))
    assert.equal(gate.save(gone).value, "gone")
    assert.equal(requests, 1)
    assert.deepEqual(gate.decide(gone, push), Result.fail(new Stuck({ pushed: 0 })))
    assert.throws(() => gate.evolve(gone, Turned.make({})), /cannot happen in this state/)
  })
})
