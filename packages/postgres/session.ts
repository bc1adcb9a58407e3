/**
 * The session that a process writes with and receives notifications on. Any failure ends it, with
 * its transaction and locks; the next use opens a new one.
 */
import { Effect, type Scope } from "effect"
import pg from "pg"
import type { DatabaseUnusable } from "#projections/database.ts"
import { failureOf } from "./failure.ts"
import { type PostgresServer, sessionOf } from "./server.ts"

/** Statements per pipeline batch; between batches other work can run. */
const batch_max = 200

/**
 * Commits do not wait for the disk: a power failure may lose the last ones with their checkpoint,
 * and the projection repeats them from the log.
 */
const asynchronous_commit = ["synchronous_commit=off"]

/** Hooks of a session. */
export interface SessionHooks {
  /** Runs before the session is used. */
  readonly onConnected: (client: pg.Client) => Promise<void>
  /** Receives notifications on channels that the session listens to. */
  readonly onNotification?: (payload: string) => void
}

export interface Session {
  /** The current client; connects if necessary. */
  readonly client: () => Promise<pg.Client>
  /** Whether this client is still the current one. */
  readonly isCurrent: (client: pg.Client) => boolean
  /** Runs `work`. A failure or an interruption ends the session. */
  readonly run: <A>(work: (client: pg.Client) => Promise<A>) => Effect.Effect<A, DatabaseUnusable>
  readonly drop: () => void
}

/** Pipelines the statements. Rejects with the first failure, which causes the others. */
const sendBatch = async (client: pg.Client, queries: ReadonlyArray<pg.QueryConfig>) => {
  const outcomes = await Promise.allSettled(queries.map((query) => client.query(query)))
  const failed = outcomes.find((outcome) => outcome.status === "rejected")
  if (failed !== undefined) throw failed.reason
}

/** Sends statements in order, in batches. */
export const sendInOrder = async (client: pg.Client, queries: ReadonlyArray<pg.QueryConfig>) => {
  for (let from = 0; from < queries.length; from += batch_max) {
    await sendBatch(client, queries.slice(from, from + batch_max))
  }
}

/** Connects on first use and again after a failure. Ends with the scope. */
export const session = (
  server: PostgresServer,
  schema: string,
  { onConnected, onNotification }: SessionHooks,
): Effect.Effect<Session, never, Scope.Scope> => {
  let opening: Promise<pg.Client> | undefined
  let current: pg.Client | undefined

  const forget = (client: pg.Client) => {
    if (current !== client) return
    current = undefined
    opening = undefined
  }
  const end = (client: pg.Client) => {
    forget(client)
    // The session is over either way; pending statements reject on their own.
    client.end().catch(() => {})
  }
  const connect = async (client: pg.Client) => {
    current = client
    client.on("error", () => forget(client))
    client.on("end", () => forget(client))
    client.on("notification", ({ payload = "" }) => onNotification?.(payload))
    try {
      await client.connect()
      await onConnected(client)
      return client
    } catch (cause) {
      end(client)
      throw cause
    }
  }
  const client = async () => {
    // The constructor throws if the URL names a file that does not exist; nothing is opening then.
    opening ??= connect(
      new pg.Client({ ...sessionOf(server, schema, asynchronous_commit), pipeline: true }),
    )
    return await opening
  }
  const drop = () => {
    if (current !== undefined) end(current)
  }
  const run = <A>(work: (client: pg.Client) => Promise<A>) =>
    Effect.suspend(() => {
      let used: pg.Client | undefined
      const attempt = async () => {
        used = await client()
        return await work(used)
      }
      // End the client that was used: a late failure must not end its successor.
      return Effect.tryPromise({ try: attempt, catch: failureOf }).pipe(
        Effect.onError(() => Effect.sync(() => (used === undefined ? drop() : end(used)))),
      )
    })

  const result: Session = { client, isCurrent: (one) => current === one, run, drop }
  return Effect.acquireRelease(Effect.succeed(result), () => Effect.sync(drop))
}
