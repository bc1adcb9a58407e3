/** The restores and accepted losses of the log, in order of position. */
import { assign, setup } from "xstate"
import { decider } from "#actors/decider.ts"
import { type Missing, mergeMissing } from "#events/log-guard.ts"
import {
  LossAccepted,
  type RestorationContext,
  RestorationEvent,
  StateRestored,
} from "#events/system/restoration.ts"
import {
  missing_ranges_max,
  RestorationCommand,
  RestorationOutOfOrder,
} from "#schemas/system/restoration.ts"

/** The only aggregate of its kind: there is one log. */
export const restoration_id = "log"

/** Maximum number of restores in the snapshot, within its 16 KiB; the oldest are dropped. */
const restores_max = 100

type Context = typeof RestorationContext.Type

const lastOf = ({ restores }: Context) => restores.at(-1)?.position ?? -1

const withRestore = (
  { restores }: Context,
  { restore_id, position }: Pick<RestorationEvent, "restore_id" | "position">,
) => [...restores, { restore_id, position }].slice(-restores_max)

/** Excludes ranges after the log's end: later commits get those positions. */
const withHoles = ({ accepted = [] }: Context, missing: ReadonlyArray<Missing>, position: number) =>
  mergeMissing([...accepted, ...missing.filter(({ from }) => from <= position)]).slice(
    -missing_ranges_max,
  )

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
          actions: assign(({ context, event }) => ({ restores: withRestore(context, event) })),
        },
        LossAccepted: {
          guard: "follows",
          actions: assign(({ context, event }) => ({
            restores: withRestore(context, event),
            accepted: withHoles(context, event.missing, event.position),
          })),
        },
      },
    },
  },
})

export const Restorations = decider({
  machine,
  version: 2,
  command: RestorationCommand,
  event: RestorationEvent,
  rejection: RestorationOutOfOrder,
  propose: {
    RecordRestoration: ({ type: _, ...restored }) => [StateRestored.make(restored)],
    AcceptLoss: ({ type: _, ...loss }) => [LossAccepted.make(loss)],
  },
  reject: ({ context }, { position }) =>
    new RestorationOutOfOrder({
      detail: `A restore up to ${position} does not follow one up to ${lastOf(context)}.`,
    }),
})
