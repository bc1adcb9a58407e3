/** Every command of an aggregate in every state: the resulting events, or the rejection's code. */
import { assert, it } from "@effect/vitest"
import type { Decider } from "#actors/decider.ts"
import { snapshot_bytes_max } from "#events/log.ts"
import type { Message } from "#schemas/message.ts"
import { given } from "./given.ts"

/** The events, none if nothing changes; or the code of the rejection. */
type Outcome<Event, Code> = ReadonlyArray<Event> | Code

interface Row<Command, Event, Code, State extends string> {
  /** The variant of the command. */
  readonly with?: string
  readonly command: Command
  /** The states whose outcome differs. */
  readonly in?: { readonly [Name in State]?: Outcome<Event, Code> }
  readonly otherwise: Outcome<Event, Code>
}

/** Tests each row in each state; a history that leads to a state represents it. */
export const everyState = <
  Command extends Message,
  Event extends Message,
  Machine,
  Rejection extends { readonly code: string },
  State extends string,
>(
  decider: Decider<Command, Event, Machine, Rejection>,
  states: { readonly [Name in State]: ReadonlyArray<Event> },
  table: {
    readonly [Type in Command["type"]]: ReadonlyArray<
      Row<Extract<Command, { readonly type: Type }>, Event, Rejection["code"], State>
    >
  },
) => {
  // The keys are those of the table's own type.
  for (const type of Object.keys(table) as Array<Command["type"]>) {
    for (const { with: special, command, in: per, otherwise } of table[type]) {
      for (const state of Object.keys(states) as Array<State>) {
        const outcome: Outcome<Event, Rejection["code"]> = per?.[state] ?? otherwise
        const what = [type, special].filter((word) => word !== undefined).join(" ")
        it(`${what} when ${state}: ${outcomeText(outcome)}`, () => {
          const then = given(decider)(...states[state]).when(command)
          if (isEvents(outcome)) then.thenEvents(...outcome)
          else then.thenRejected(outcome)
        })
      }
    }
  }
}

const isEvents = <Event, Code>(outcome: Outcome<Event, Code>): outcome is ReadonlyArray<Event> =>
  Array.isArray(outcome)

const outcomeText = (outcome: Outcome<Message, string>) =>
  isEvents(outcome) ? outcome.map(({ type }) => type).join(", ") || "nothing changes" : outcome

/** Asserts that the state after these events fits in a commit, and survives a save and restore. */
export const assertStorable = <Command, Event extends Message, State, Rejection>(
  { evolve, initialState, save, restore }: Decider<Command, Event, State, Rejection>,
  history: ReadonlyArray<Event>,
) => {
  const saved = save(history.reduce(evolve, initialState))
  const text = JSON.stringify(saved)
  assert.isBelow(new TextEncoder().encode(text).length, snapshot_bytes_max)
  const restored = restore(JSON.parse(text))
  assert.isDefined(restored)
  assert.deepEqual(save(restored), saved)
  return saved
}
