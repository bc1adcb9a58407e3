/**
 * The knowledge of a server's clients: which of their operations were acknowledged, which may or
 * may not have taken effect, and therefore what must exist after the server was killed.
 */
import type { Client } from "./client.ts"

/** A subject's state after all acknowledged operations; `undefined` means absent. */
export type State = string | undefined

/** One request that would change something, by the name that its client chose. */
export interface Operation {
  /** Sent as `X-Request-Id`, so that its events include it. */
  readonly name: string
  /** The identifier of a blob or a node. */
  readonly subject: string
  readonly before: State
  readonly after: State
  /** Whether the server acknowledged it. */
  readonly is_acknowledged: boolean
  /** Sends the same command again, with the same name and key, and returns when it is done. */
  readonly again?: (client: Client) => Promise<void>
}

/** The operations of one data folder's clients, in order, and the resulting states. */
export const ledger = () => {
  const operations: Array<Operation> = []
  const states = new Map<string, State>()
  /** The last unanswered operation on each subject. */
  const doubts = new Map<string, Operation>()
  /** Whether an operation in doubt turned out to be done, by its name. */
  const settled = new Map<string, boolean>()

  return {
    operations,
    states,
    doubts,
    stateOf: (subject: string) => states.get(subject),
    /** Clients do not change such a subject until its state is known. */
    isInDoubt: (subject: string) => doubts.has(subject),
    note: (operation: Operation) => {
      operations.push(operation)
      if (operation.is_acknowledged) states.set(operation.subject, operation.after)
      else doubts.set(operation.subject, operation)
    },
    /**
     * Records a subject's actual state; fails if it is neither the state before nor the one after.
     */
    resolve: (subject: string, found: State) => {
      const doubt = doubts.get(subject)
      if (doubt === undefined) return
      if (found !== doubt.before && found !== doubt.after) {
        throw new Error(`${subject} is ${found}, neither ${doubt.before} nor ${doubt.after}`)
      }
      states.set(subject, found)
      doubts.delete(subject)
      settled.set(doubt.name, found === doubt.after)
    },
    /** How often an operation must have changed something: never or once. */
    timesDone: ({ name, before, after, is_acknowledged }: Operation) => {
      const is_done = is_acknowledged || settled.get(name) === true
      return is_done && before !== after ? 1 : 0
    },
    acknowledged: () => operations.filter(({ is_acknowledged }) => is_acknowledged).length,
  }
}

export type Ledger = ReturnType<typeof ledger>
