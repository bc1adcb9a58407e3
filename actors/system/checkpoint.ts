/** The checkpoints of the log: one gap-free sequence of sealed stretches. */
import { assign, setup } from "xstate"
import { decider } from "#actors/decider.ts"
import { parseStream, type Recorded } from "#events/log.ts"
import { CheckpointEvent, CheckpointMade } from "#events/system/checkpoint.ts"
import { CheckpointCommand, CheckpointOutOfOrder } from "#schemas/system/checkpoint.ts"

/** The only aggregate of its kind: there is one log. */
export const checkpoint_id = "log"

interface Context {
  /** The last position that is sealed; 0 when none is. */
  readonly to: number
  readonly root: string
}

const chart = setup({
  types: { context: {} as Context, events: {} as CheckpointEvent },
  guards: {
    follows: ({ context, event: { from, to, commits } }) =>
      from === context.to + 1 && commits <= to - from + 1,
  },
})

export const machine = chart.createMachine({
  id: "system.checkpoint",
  context: { to: 0, root: "" },
  initial: "open",
  states: {
    open: {
      on: {
        CheckpointMade: {
          guard: "follows",
          actions: assign(({ event: { to, root } }) => ({ to, root })),
        },
      },
    },
  },
})

export const Checkpoint = decider({
  machine,
  version: 1,
  command: CheckpointCommand,
  event: CheckpointEvent,
  rejection: CheckpointOutOfOrder,
  propose: {
    MakeCheckpoint: ({ from, to, commits, root }) => [
      CheckpointMade.make({ from, to, commits, root }),
    ],
  },
  reject: ({ context }, { from, to }) =>
    new CheckpointOutOfOrder({
      detail: `The stretch ${from} to ${to} does not follow ${context.to}.`,
    }),
})

/** The one stream of checkpoints. */
export const checkpoint_stream = `${Checkpoint.name}.${checkpoint_id}`

export const isCheckpoint = ({ stream }: Pick<Recorded, "stream">) =>
  parseStream(stream).name === Checkpoint.name

/** The root before the first commit. `hash` is SHA-256 (hex) of a text. */
export const firstRoot = (hash: (text: string) => string) => hash(checkpoint_stream)

/** The root after one more commit: it holds the commit, its place and its stream. */
export const nextRoot = (
  hash: (text: string) => string,
  root: string,
  { position, stream, hash: commit }: Pick<Recorded, "position" | "stream" | "hash">,
) => hash(`${root} ${position} ${stream} ${commit}`)
