/** The restores of the log, each from a backup that has more of it than the one before. */
import { assign, setup } from "xstate"
import { decider } from "#actors/decider.ts"
import {
  type RestorationContext,
  RestorationEvent,
  StateRestored,
} from "#events/system/restoration.ts"
import { RestorationCommand, RestorationOutOfOrder } from "#schemas/system/restoration.ts"

/** The only aggregate of its kind: there is one log. */
export const restoration_id = "log"

/** Restores that the snapshot keeps, within its 16 KiB; the first go, which nobody asks for. */
const restores_max = 100

type Context = typeof RestorationContext.Type

const lastOf = ({ restores }: Context) => restores.at(-1)?.position ?? 0

export const machine = setup({
  types: { context: {} as Context, events: {} as RestorationEvent },
  guards: {
    follows: ({ context, event: { position } }) => position > lastOf(context),
  },
}).createMachine({
  id: "system.restoration",
  context: { restores: [] },
  initial: "open",
  states: {
    open: {
      on: {
        StateRestored: {
          guard: "follows",
          actions: assign(({ context, event: { restore_id, position } }) => ({
            restores: [...context.restores, { restore_id, position }].slice(-restores_max),
          })),
        },
      },
    },
  },
})

export const Restorations = decider({
  machine,
  version: 1,
  command: RestorationCommand,
  event: RestorationEvent,
  rejection: RestorationOutOfOrder,
  propose: {
    RecordRestoration: ({ type: _, ...restored }) => [StateRestored.make(restored)],
  },
  reject: ({ context }, { position }) =>
    new RestorationOutOfOrder({
      detail: `A restore up to ${position} does not follow one up to ${lastOf(context)}.`,
    }),
})
