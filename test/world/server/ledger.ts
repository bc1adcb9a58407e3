/**
 * What the clients of a server know: which of their operations were acknowledged, which may have
 * happened or not, and so what must be there after the server was killed.
 */
import type { Client } from "./client.ts"

/** What a subject is by all that was acknowledged; `undefined` is absent. */
export type State = string | undefined

/** One request that would change something, by the name that its client gave it. */
export interface Operation {
  /** Sent as `X-Request-Id`, so that its events carry it. */
  readonly name: string
  /** A blob's identifier, or a node's. */
  readonly subject: string
  readonly before: State
  readonly after: State
  /** Whether the server answered that it is done. */
  readonly is_acknowledged: boolean
  /** Sends the same command once more, by the same name and key, and answers when it is done. */
  readonly again?: (client: Client) => Promise<void>
}

/** The operations of one data folder's clients, in their order, and what they come to. */
export const ledger = () => {
  const operations: Array<Operation> = []
  const states = new Map<string, State>()
  /** What the answer to the last, unanswered operation on a subject would have been. */
  const doubts = new Map<string, Operation>()
  /** Whether an operation that was in doubt was found done, by its name. */
  const settled = new Map<string, boolean>()

  return {
    operations,
    states,
    doubts,
    stateOf: (subject: string) => states.get(subject),
    /** Nothing more is done to such a subject before it is known what it is. */
    isInDoubt: (subject: string) => doubts.has(subject),
    note: (operation: Operation) => {
      operations.push(operation)
      if (operation.is_acknowledged) states.set(operation.subject, operation.after)
      else doubts.set(operation.subject, operation)
    },
    /** What a subject turned out to be; fails when it is neither before nor after the doubt. */
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
