/** The generations of the log, in sequence. */
import { assign, setup } from "xstate"
import { decider } from "#actors/decider.ts"
import { GenerationEvent, GenerationStarted } from "#events/system/generation.ts"
import { GenerationCommand, GenerationOutOfOrder } from "#schemas/system/generation.ts"

/** The only aggregate of its kind: there is one log. */
export const generation_id = "log"

interface Context {
  readonly generation: number
  /** The last position of the previous generation; 0 in the first. */
  readonly base: number
}

export const machine = setup({
  types: { context: {} as Context, events: {} as GenerationEvent },
  guards: {
    follows: ({ context, event: { generation, base, tree } }) =>
      generation === context.generation + 1 && base > context.base && tree.size === base,
  },
}).createMachine({
  id: "system.generation",
  context: { generation: 1, base: 0 },
  initial: "open",
  states: {
    open: {
      on: {
        GenerationStarted: {
          guard: "follows",
          actions: assign(({ event: { generation, base } }) => ({ generation, base })),
        },
      },
    },
  },
})

export const Generation = decider({
  machine,
  version: 1,
  command: GenerationCommand,
  event: GenerationEvent,
  rejection: GenerationOutOfOrder,
  propose: {
    StartGeneration: ({ type: _, ...range }) => [GenerationStarted.make(range)],
  },
  reject: ({ context }, { generation, base }) =>
    new GenerationOutOfOrder({
      detail:
        `Generation ${generation} after ${base} does not follow ` +
        `generation ${context.generation} after ${context.base}.`,
    }),
})

/** The one stream of generations. */
export const generation_stream = `${Generation.name}.${generation_id}`
