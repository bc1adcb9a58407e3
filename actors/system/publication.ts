/**
 * The anchors of the numbering of published events, in order of position. Source: decision 0172.
 */
import { Clock, DateTime, Effect, Equal, Struct } from "effect"
import { assign, setup } from "xstate"
import { address, Commands } from "#actors/commands.ts"
import { decider } from "#actors/decider.ts"
import { PublicationAnchored, PublicationEvent } from "#events/system/publication.ts"
import {
  AnchorOutOfOrder,
  AnchorPublication,
  PublicationCommand,
} from "#schemas/system/publication.ts"

/** The only aggregate of its kind: there is one log. */
const publication_id = "log"

/** The actor in the log. */
const actor = "process:system-publisher"

type Anchor = Omit<PublicationEvent, "type">

interface Context extends Anchor {}

const chart = setup({
  types: { context: {} as Context, events: {} as PublicationEvent },
  guards: {
    // A release that publishes more types may anchor the same position again.
    follows: ({ context, event: { position, types } }) =>
      position > context.position ||
      (position === context.position && !Equal.equals(types, context.types)),
  },
})

export const machine = chart.createMachine({
  id: "system.publication",
  context: { sequence: 0, position: 0, index: 0, types: [] },
  initial: "open",
  states: {
    open: {
      on: {
        PublicationAnchored: {
          guard: "follows",
          actions: assign(({ event }) => Struct.omit(event, ["type"])),
        },
      },
    },
  },
})

export const Publications = decider({
  machine,
  version: 1,
  command: PublicationCommand,
  event: PublicationEvent,
  rejection: AnchorOutOfOrder,
  propose: {
    AnchorPublication: ({ type: _, ...anchor }) => [PublicationAnchored.make(anchor)],
  },
  reject: ({ context }, { position }) =>
    new AnchorOutOfOrder({
      detail: `An anchor at position ${position} does not follow one at ${context.position}.`,
    }),
})

/** Records an anchor in the log, once. */
export const anchorPublication = Effect.fnUntraced(function* (anchor: Anchor) {
  const commands = yield* Commands
  const at = DateTime.formatIso(DateTime.makeUnsafe(yield* Clock.currentTimeMillis))
  const command_id = `anchor-${anchor.position}-${anchor.types.length}`
  const command = AnchorPublication.make(anchor)
  yield* commands.send({ command_id, actor, at }, address(Publications, publication_id, command))
})
