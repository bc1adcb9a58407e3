/** The checkpoints of the log: a gap-free sequence of sealed ranges. */
import { assign, setup } from "xstate"
import { decider } from "#actors/decider.ts"
import { peaksOf } from "#actors/system/tree.ts"
import { parseStream, type Recorded } from "#events/log.ts"
import { CheckpointEvent, CheckpointMade } from "#events/system/checkpoint.ts"
import {
  CheckpointCommand,
  CheckpointOutOfOrder,
  type SealedTree,
} from "#schemas/system/checkpoint.ts"

/** The only aggregate of its kind: there is one log. */
export const checkpoint_id = "log"

interface Context {
  /** The last sealed position; 0 if none is. */
  readonly to: number
  readonly root: string
  /** Absent if the last checkpoint had none. */
  readonly tree?: SealedTree
}

/** True if the tree has every commit of the log up to the checkpoint's last. */
const isTreeOf = (to: number, tree: SealedTree | undefined) =>
  tree === undefined || (tree.size === to && tree.peaks.length === peaksOf(to))

const chart = setup({
  types: { context: {} as Context, events: {} as CheckpointEvent },
  guards: {
    follows: ({ context, event: { from, to, commits, tree } }) =>
      from === context.to + 1 && commits <= to - from + 1 && isTreeOf(to, tree),
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
          actions: assign(({ event: { to, root, tree } }) => ({ to, root, ...(tree && { tree }) })),
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
    MakeCheckpoint: ({ type: _, ...range }) => [CheckpointMade.make(range)],
  },
  reject: ({ context }, { from, to }) =>
    new CheckpointOutOfOrder({
      detail: `The range ${from} to ${to} does not follow ${context.to}.`,
    }),
})

/** The one stream of checkpoints. */
export const checkpoint_stream = `${Checkpoint.name}.${checkpoint_id}`

export const isCheckpoint = ({ stream }: Pick<Recorded, "stream">) =>
  parseStream(stream).name === Checkpoint.name

/** The root before the first commit. `hash` is SHA-256 (hex) of a text. */
export const firstRoot = (hash: (text: string) => string) => hash(checkpoint_stream)

/** The root after one more commit: it covers the commit, its position and its stream. */
export const nextRoot = (
  hash: (text: string) => string,
  root: string,
  { position, stream, hash: commit }: Pick<Recorded, "position" | "stream" | "hash">,
) => hash(`${root} ${position} ${stream} ${commit}`)
