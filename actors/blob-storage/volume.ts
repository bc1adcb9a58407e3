/**
 * A volume: how far a node's journal is in the log, and what the node holds by it.
 *
 * Source: DESIGN of the running system, "The exception: bytes".
 */
import { Struct } from "effect"
import { and, assign, setup } from "xstate"
import { decider } from "#actors/decider.ts"
import {
  BlobDeleted,
  BlobLost,
  BlobQuarantined,
  BlobStored,
  VolumeEvent,
} from "#events/blob-storage/volume.ts"
import { FactsOutOfOrder, VolumeCommand, type VolumeFact } from "#schemas/blob-storage/volume.ts"

interface Context {
  /** The journal's last fact that is recorded. */
  readonly cursor: number
  readonly blobs: number
  readonly bytes: number
}

const chart = setup({
  types: { context: {} as Context, events: {} as VolumeEvent },
  guards: {
    follows: ({ context, event }) =>
      event.after === context.cursor && event.cursor > context.cursor,
    is_held: ({ context, event }) => context.blobs > 0 && context.bytes >= event.size,
  },
  actions: {
    add: assign(({ context, event }) => ({
      cursor: event.cursor,
      blobs: context.blobs + 1,
      bytes: context.bytes + event.size,
    })),
    take: assign(({ context, event }) => ({
      cursor: event.cursor,
      blobs: context.blobs - 1,
      bytes: context.bytes - event.size,
    })),
  },
})

const taken = { guard: and(["follows", "is_held"]), actions: "take" } as const

export const machine = chart.createMachine({
  id: "blob-storage.volume",
  context: { cursor: 0, blobs: 0, bytes: 0 },
  initial: "open",
  states: {
    open: {
      on: {
        BlobStored: { guard: "follows", actions: "add" },
        BlobDeleted: taken,
        BlobQuarantined: taken,
        BlobLost: taken,
      },
    },
  },
})

const eventOf = (after: number, { kind, ...fact }: VolumeFact): VolumeEvent => {
  if (kind === "stored") return BlobStored.make({ after, ...fact })
  const gone = { after, ...Struct.omit(fact, ["labels"]) }
  if (kind === "deleted") return BlobDeleted.make(gone)
  return kind === "quarantined" ? BlobQuarantined.make(gone) : BlobLost.make(gone)
}

export const Volume = decider({
  machine,
  version: 1,
  command: VolumeCommand,
  event: VolumeEvent,
  rejection: FactsOutOfOrder,
  propose: {
    RecordFacts: ({ from, facts }) =>
      facts.map((fact, i) => eventOf(facts[i - 1]?.cursor ?? from, fact)),
  },
  reject: ({ context }, { from, to }) =>
    new FactsOutOfOrder({
      detail: `Facts after ${from} to ${to} do not follow cursor ${context.cursor}.`,
    }),
})
