/**
 * How far a spool is in the log: what the aggregates of spooled facts keep, and what they refuse.
 *
 * A cursor belongs to an epoch, which is one spool's file. A file that was deleted begins another
 * epoch, and one that is put back goes on where it was: so neither loses facts nor doubles them.
 */
import { assign, setup } from "xstate"
import { FactsOutOfOrder } from "#schemas/spooled.ts"

/** Epochs of which the cursor is known: a file is exchanged by hand, and rarely. */
export const epochs_max = 8

export interface FactContext {
  /** Each spool's last fact that is recorded; the spool that told last is last. */
  readonly epochs: ReadonlyArray<{ readonly epoch: string; readonly cursor: number }>
  /** All that were ever recorded. */
  readonly facts: number
}

export const no_facts: FactContext = { epochs: [], facts: 0 }

interface Placed {
  readonly epoch: string
  readonly after: number
  readonly cursor: number
}

/** The last fact of the epoch that is recorded; 0 before the first. */
export const cursorIn = ({ epochs }: FactContext, epoch: string): number =>
  epochs.find((known) => known.epoch === epoch)?.cursor ?? 0

/** Whether the fact is the next one of its spool. */
const follows = (context: FactContext, { epoch, after, cursor }: Placed): boolean =>
  after === cursorIn(context, epoch) && cursor > after

export const withFact = (context: FactContext, { epoch, cursor }: Placed): FactContext => {
  const others = context.epochs.filter((known) => known.epoch !== epoch)
  return { epochs: [...others, { epoch, cursor }].slice(-epochs_max), facts: context.facts + 1 }
}

const chart = setup({
  types: { context: {} as FactContext, events: {} as Placed & { readonly type: string } },
  guards: { follows: ({ context, event }) => follows(context, event) },
  actions: { count: assign(({ context, event }) => withFact(context, event)) },
})

/** The chart of a node's facts, which events of one type record. */
export const factChart = (id: string, type: string) =>
  chart.createMachine({
    id,
    context: no_facts,
    initial: "open",
    states: { open: { on: { [type]: { guard: "follows", actions: "count" } } } },
  })

/** What a command to record facts proposes: an event of each, after the one before it. */
export const placed = <Fact, Event>(
  {
    epoch,
    from,
    facts,
  }: {
    readonly epoch: string
    readonly from: number
    readonly facts: ReadonlyArray<{ readonly cursor: number; readonly fact: Fact }>
  },
  event: (at: Placed & Fact) => Event,
): ReadonlyArray<Event> =>
  facts.map(({ cursor, fact }, index) =>
    event({ ...fact, epoch, after: facts[index - 1]?.cursor ?? from, cursor }),
  )

/** Why facts are refused. */
export const outOfOrder = (
  { context }: { readonly context: FactContext },
  { epoch, from }: { readonly epoch: string; readonly from: number },
) =>
  new FactsOutOfOrder({
    detail: `Facts after ${from} do not follow cursor ${cursorIn(context, epoch)} of ${epoch}.`,
  })
