/**
 * Questions to the server whose answers come to one inbox.
 *
 * The client's own `request` makes an error with its stack for each question that is answered, and
 * sets a timer for each: together as dear as the rest of a small append.
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

/** How often questions are looked through for those that wait too long, in milliseconds. */
const sweep_ms = 250

/** HTTP's and JetStream's code for "nobody is there". */
const no_responders = 503

interface Open {
  readonly subject: string
  readonly due: number
  readonly resolve: (message: Msg) => void
  readonly reject: (cause: unknown) => void
}

/** Answers the reply, or rejects: NoRespondersError, LinkLost, or TimeoutError after `wait_ms`. */
export type Ask = (subject: string, data: Uint8Array, headers: MsgHdrs) => Promise<Msg>

/** Asks over a connection for as long as the scope lives; no question waits beyond `wait_ms`. */
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
      // They are in the order in which they were asked, and all wait equally long.
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
