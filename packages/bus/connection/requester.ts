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

/** Milliseconds between checks for requests that have timed out. */
const sweep_ms = 250

/** NATS status code for "no responders". */
const no_responders = 503

interface Pending {
  readonly subject: string
  readonly due: number
  readonly resolve: (message: Msg) => void
  readonly reject: (cause: unknown) => void
}

/** Sends a request. Rejects with NoRespondersError, LinkLost, or TimeoutError after `wait_ms`. */
export type SendRequest = (subject: string, data: Uint8Array, headers: MsgHdrs) => Promise<Msg>

/** Sends requests over a connection until the scope closes, each with a timeout of `wait_ms`. */
export const requester = Effect.fnUntraced(function* (
  connection: NatsConnection,
  link: Link,
  wait_ms: number,
) {
  const inbox = createInbox()
  const pending = new Map<string, Pending>()
  let sent = 0

  const remove = (token: string) => {
    const request = pending.get(token)
    pending.delete(token)
    return request
  }
  const receive = (message: Msg) => {
    const pending_request = remove(message.subject.slice(inbox.length + 1))
    if (message.data.length === 0 && message.headers?.code === no_responders) {
      pending_request?.reject(new NoRespondersError(pending_request.subject))
    } else pending_request?.resolve(message)
  }
  const failAll = () => {
    if (link.isUp()) return
    for (const token of [...pending.keys()]) {
      remove(token)?.reject(new LinkLost({ message: "the connection was lost" }))
    }
  }
  const sweep = () => {
    const now = performance.now()
    for (const [token, { due }] of pending) {
      // Requests are in the order in which they were sent, and share one timeout.
      if (due > now) return
      remove(token)?.reject(new TimeoutError())
    }
  }

  yield* Effect.acquireRelease(
    Effect.sync(() => {
      const callback = (error: Error | null, message: Msg) => {
        if (error === null) receive(message)
      }
      const subscription = connection.subscribe(`${inbox}.*`, { callback })
      const forget = link.onChange(failAll)
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

  const send: SendRequest = (subject, data, headers) =>
    new Promise((resolve, reject) => {
      if (!link.isUp()) return reject(new LinkLost({ message: "there is no connection" }))
      const token = `${sent++}`
      pending.set(token, { subject, due: performance.now() + wait_ms, resolve, reject })
      try {
        connection.publish(subject, data, { headers, reply: `${inbox}.${token}` })
      } catch (cause) {
        remove(token)
        reject(cause)
      }
    })
  return send
})
