/** State of a connection to the bus. A loss fails pending requests immediately. */
import type { NatsConnection, Status } from "@nats-io/transport-node"
import { Effect, Schema, Stream } from "effect"

/** Needed because the client leaves a request pending when its connection is lost. */
export interface Link {
  readonly isUp: () => boolean
  /** Whether it is closed permanently. */
  readonly isClosed: () => boolean
  /** Calls back on each loss and reconnect; the returned function unsubscribes. */
  readonly onChange: (listener: () => void) => () => void
}

/** Watches a connection for as long as the scope is open. */
export const watchLink = Effect.fnUntraced(function* (connection: NatsConnection) {
  const listeners = new Set<() => void>()
  let is_up = true
  const changed = ({ type }: Status) => {
    if (type !== "disconnect" && type !== "reconnect" && type !== "close") return
    is_up = type === "reconnect"
    for (const listener of [...listeners]) listener()
  }
  yield* Effect.forkScoped(
    Stream.runForEach(Stream.fromAsyncIterable(connection.status(), String), (status) =>
      Effect.sync(() => changed(status)),
    ).pipe(Effect.ignore),
  )
  return {
    isUp: () => is_up && !connection.isClosed(),
    isClosed: () => connection.isClosed(),
    onChange: (listener) => {
      listeners.add(listener)
      return () => listeners.delete(listener)
    },
  } satisfies Link
})

/** The connection was lost before the response arrived. */
export class LinkLost extends Schema.TaggedError<LinkLost>()("LinkLost", {
  message: Schema.String,
}) {}

/** Runs a request; rejects with LinkLost if the connection is down or as soon as it is lost. */
export const overLink = <A>(link: Link, ask: () => Promise<A>): Promise<A> =>
  new Promise((resolve, reject) => {
    if (!link.isUp()) return reject(new LinkLost({ message: "there is no connection" }))
    const forget = link.onChange(() => {
      if (!link.isUp()) settle(() => reject(new LinkLost({ message: "the connection was lost" })))
    })
    const settle = (complete: () => void) => {
      forget()
      complete()
    }
    ask().then(
      (answer) => settle(() => resolve(answer)),
      (cause) => settle(() => reject(cause)),
    )
  })
