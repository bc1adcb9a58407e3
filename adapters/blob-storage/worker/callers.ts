/**
 * Who is known in a thread: whoever the process's own thread has let in a moment ago. That one
 * alone decides, and is asked again and again.
 */
import { Effect } from "effect"
import type { Caller } from "#gateway/caller.ts"
import { type Authenticate, Unauthenticated } from "#gateway/identity.ts"

/** So long a token that was withdrawn counts at most, in milliseconds. */
export const known_ms = 250

/** Tokens known at once: about 1 KB each. */
const known_max = 10_000

interface Known {
  readonly answer: Effect.Effect<Caller>
  readonly until_ms: number
}

const unknown = Effect.fail(new Unauthenticated({ reason: "unknown" }))

/** `ask` is told a number to answer by, and the token; "" is of whoever shows none. */
export const workerCallers = (
  ask: (number: number, token: string) => void,
  now_ms: () => number = () => performance.now(),
) => {
  const known = new Map<string, Known>()
  const asked = new Map<number, (caller: Caller | undefined) => void>()
  let number = 0

  const find = (token: string) => {
    const found = known.get(token)
    return found !== undefined && now_ms() < found.until_ms ? found.answer : undefined
  }
  const keep = (token: string, caller: Caller) => {
    known.delete(token)
    // From now on: a thread that is told late, since all is busy, would know nobody else.
    known.set(token, { answer: Effect.succeed(caller), until_ms: now_ms() + known_ms })
    const [oldest] = known.keys()
    if (known.size > known_max && oldest !== undefined) known.delete(oldest)
  }
  const authenticate: Authenticate = ({ token }) => find(token?.() ?? "") ?? unknown
  return {
    authenticate,
    /** Calls `then` once it is known who that is, or that nobody is; at once where it is. */
    whenKnown: (token: string, then: () => void) => {
      if (find(token) !== undefined) return then()
      number += 1
      asked.set(number, (caller) => {
        if (caller === undefined) known.delete(token)
        else keep(token, caller)
        then()
      })
      ask(number, token)
    },
    told: (number: number, caller: Caller | undefined) => {
      asked.get(number)?.(caller)
      asked.delete(number)
    },
  }
}
