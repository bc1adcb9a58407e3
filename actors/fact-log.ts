/**
 * The chart of aggregates that record spooled facts. It keeps each spool's cursor and rejects facts
 * that do not follow it.
 *
 * A cursor belongs to an epoch, which is one spool file. A deleted file starts a new epoch, and a
 * restored one continues its own: neither case loses or duplicates facts.
 */
import { assign, setup } from "xstate"
import { FactsOutOfOrder } from "#schemas/spooled.ts"

/** Maximum number of epochs to remember: files are replaced by hand, and rarely. */
export const epochs_max = 8

export interface FactContext {
  /** The last recorded fact of each spool; the most recently active spool comes last. */
  readonly epochs: ReadonlyArray<{ readonly epoch: string; readonly cursor: number }>
  /** Number of facts ever recorded. */
  readonly facts: number
}

export const no_facts: FactContext = { epochs: [], facts: 0 }

interface FactPosition {
  readonly epoch: string
  readonly after: number
  readonly cursor: number
}

/** The epoch's last recorded fact; 0 before the first. */
export const cursorIn = ({ epochs }: FactContext, epoch: string): number =>
  epochs.find((known) => known.epoch === epoch)?.cursor ?? 0

/** True if the fact is the next one of its spool. */
const follows = (context: FactContext, { epoch, after, cursor }: FactPosition): boolean =>
  after === cursorIn(context, epoch) && cursor > after

export const withFact = (context: FactContext, { epoch, cursor }: FactPosition): FactContext => {
  const others = context.epochs.filter((known) => known.epoch !== epoch)
  return { epochs: [...others, { epoch, cursor }].slice(-epochs_max), facts: context.facts + 1 }
}

const chart = setup({
  types: { context: {} as FactContext, events: {} as FactPosition & { readonly type: string } },
  guards: { follows: ({ context, event }) => follows(context, event) },
  actions: { count: assign(({ context, event }) => withFact(context, event)) },
})

/** The chart of a node's facts, recorded by events of one type. */
export const factChart = (id: string, type: string) =>
  chart.createMachine({
    id,
    context: no_facts,
    initial: "open",
    states: { open: { on: { [type]: { guard: "follows", actions: "count" } } } },
  })

/** One event per fact, each linked to the fact before it. */
export const factEvents = <Fact, Event>(
  {
    epoch,
    from,
    facts,
  }: {
    readonly epoch: string
    readonly from: number
    readonly facts: ReadonlyArray<{ readonly cursor: number; readonly fact: Fact }>
  },
  event: (at: FactPosition & Fact) => Event,
): ReadonlyArray<Event> =>
  facts.map(({ cursor, fact }, index) =>
    event({ ...fact, epoch, after: facts[index - 1]?.cursor ?? from, cursor }),
  )

/** The rejection of facts that do not follow the cursor. */
export const outOfOrder = (
  { context }: { readonly context: FactContext },
  { epoch, from }: { readonly epoch: string; readonly from: number },
) =>
  new FactsOutOfOrder({
    detail:
      `Facts after ${from} do not continue at cursor ${cursorIn(context, epoch)} of ` + `${epoch}.`,
  })
