/** Whether a connection to the bus is up, told at once to those who wait for answers over it. */
import type { NatsConnection, Status } from "@nats-io/transport-node"
import { Effect, Schema, Stream } from "effect"

/** The client says nothing to a request whose connection is lost: its answer never comes. */
export interface Link {
  readonly isUp: () => boolean
  /** Whether it is given up for good. */
  readonly isClosed: () => boolean
  /** Calls back at each loss and return of the connection, until the answer is called. */
  readonly onChange: (listener: () => void) => () => void
}

/** Watches a connection for as long as the scope is open. */
export const watchLink = Effect.fnUntraced(function* (connection: NatsConnection) {
  const listeners = new Set<() => void>()
  let up = true
  const told = ({ type }: Status) => {
    if (type !== "disconnect" && type !== "reconnect" && type !== "close") return
    up = type === "reconnect"
    for (const listener of [...listeners]) listener()
  }
  yield* Effect.forkScoped(
    Stream.runForEach(Stream.fromAsyncIterable(connection.status(), String), (status) =>
      Effect.sync(() => told(status)),
    ).pipe(Effect.ignore),
  )
  return {
    isUp: () => up && !connection.isClosed(),
    isClosed: () => connection.isClosed(),
    onChange: (listener) => {
      listeners.add(listener)
      return () => listeners.delete(listener)
    },
  } satisfies Link
})

/** The connection went away before the answer came. */
export class LinkLost extends Schema.TaggedError<LinkLost>()("LinkLost", {
  message: Schema.String,
}) {}

/** What `ask` answers, or rejects with LinkLost as soon as the connection is lost, or if it is. */
export const overLink = <A>(link: Link, ask: () => Promise<A>): Promise<A> =>
  new Promise((resolve, reject) => {
    if (!link.isUp()) return reject(new LinkLost({ message: "there is no connection" }))
    const forget = link.onChange(() => {
      if (!link.isUp()) settle(() => reject(new LinkLost({ message: "the connection was lost" })))
    })
    const settle = (how: () => void) => {
      forget()
      how()
    }
    ask().then(
      (answer) => settle(() => resolve(answer)),
      (cause) => settle(() => reject(cause)),
    )
  })
