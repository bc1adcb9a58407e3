/**
 * Requests to the server whose responses share one inbox.
 *
 * The client's own `request` creates an error with a stack trace and a timer for each request,
 * which together cost as much as the rest of a small append.
 */
import {
  createInbox,
  type Msg,
  type MsgHdrs,
  type NatsConnection,
  NoRespondersError,
  TimeoutError,
} from "@nats-io/transport-node"
import { Effect } from "effect"
import { type Link, LinkLost } from "./link.ts"

/** Milliseconds between two checks for requests that have timed out. */
const sweep_ms = 250

/** NATS status code for "no responders". */
const no_responders = 503

interface Open {
  readonly subject: string
  readonly due: number
  readonly resolve: (message: Msg) => void
  readonly reject: (cause: unknown) => void
}

/** Sends a request. Rejects with NoRespondersError, LinkLost, or TimeoutError after `wait_ms`. */
export type Ask = (subject: string, data: Uint8Array, headers: MsgHdrs) => Promise<Msg>

/** Sends requests over a connection until the scope closes, each with a timeout of `wait_ms`. */
export const asker = Effect.fnUntraced(function* (
  connection: NatsConnection,
  link: Link,
  wait_ms: number,
) {
  const inbox = createInbox()
  const open = new Map<string, Open>()
  let asked = 0

  const close = (token: string) => {
    const question = open.get(token)
    open.delete(token)
    return question
  }
  const heard = (message: Msg) => {
    const question = close(message.subject.slice(inbox.length + 1))
    if (message.data.length === 0 && message.headers?.code === no_responders) {
      question?.reject(new NoRespondersError(question.subject))
    } else question?.resolve(message)
  }
  const lose = () => {
    if (link.isUp()) return
    for (const token of [...open.keys()]) {
      close(token)?.reject(new LinkLost({ message: "the connection was lost" }))
    }
  }
  const sweep = () => {
    const now = performance.now()
    for (const [token, { due }] of open) {
      // They are in the order in which they were sent, and share one timeout.
      if (due > now) return
      close(token)?.reject(new TimeoutError())
    }
  }

  yield* Effect.acquireRelease(
    Effect.sync(() => {
      const callback = (error: Error | null, message: Msg) => {
        if (error === null) heard(message)
      }
      const subscription = connection.subscribe(`${inbox}.*`, { callback })
      const forget = link.onChange(lose)
      const sweeping = setInterval(sweep, sweep_ms)
      sweeping.unref()
      return { subscription, forget, sweeping }
    }),
    ({ subscription, forget, sweeping }) =>
      Effect.sync(() => {
        clearInterval(sweeping)
        forget()
        subscription.unsubscribe()
      }),
  )

  const ask: Ask = (subject, data, headers) =>
    new Promise((resolve, reject) => {
      if (!link.isUp()) return reject(new LinkLost({ message: "there is no connection" }))
      const token = `${asked++}`
      open.set(token, { subject, due: performance.now() + wait_ms, resolve, reject })
      try {
        connection.publish(subject, data, { headers, reply: `${inbox}.${token}` })
      } catch (cause) {
        close(token)
        reject(cause)
      }
    })
  return ask
})
