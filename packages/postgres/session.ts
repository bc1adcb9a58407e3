/**
 * The session over which a process writes a read model and hears of it. Whatever fails ends it,
 * and with it a transaction that is open and the locks that it has; the next one begins anew.
 */
import { Effect, type Scope } from "effect"
import pg from "pg"
import type { DatabaseUnusable } from "#projections/database.ts"
import { failureOf } from "./failure.ts"
import { type PostgresServer, sessionOf } from "./server.ts"

/** Statements that are sent before the first is answered; then others have the thread. */
const sent_max = 200

/**
 * A commit does not wait for the disk: a power cut may take the last ones back, checkpoint and all,
 * and the log fills them in again.
 */
const lazily = ["synchronous_commit=off"]

/** What begins a session: it is used when this is done. */
export interface Beginning {
  readonly begun: (client: pg.Client) => Promise<void>
  /** What other sessions tell on channels that this one listens to. */
  readonly heard?: (payload: string) => void
}

export interface Session {
  /** The client of now; connects where there is none. */
  readonly client: () => Promise<pg.Client>
  /** Whether this client is still the session's. */
  readonly isCurrent: (client: pg.Client) => boolean
  /** Runs it; a failure or an interruption ends the session. */
  readonly run: <A>(work: (client: pg.Client) => Promise<A>) => Effect.Effect<A, DatabaseUnusable>
  readonly drop: () => void
}

/** The statements at once, as a line of them; the first that fails is why the others do. */
const sendAll = async (client: pg.Client, queries: ReadonlyArray<pg.QueryConfig>) => {
  const outcomes = await Promise.allSettled(queries.map((query) => client.query(query)))
  const failed = outcomes.find((outcome) => outcome.status === "rejected")
  if (failed !== undefined) throw failed.reason
}

/** Sends statements in their order, some hundreds at a time. */
export const inOrder = async (client: pg.Client, queries: ReadonlyArray<pg.QueryConfig>) => {
  for (let from = 0; from < queries.length; from += sent_max) {
    await sendAll(client, queries.slice(from, from + sent_max))
  }
}

/** Connects at the first use, and again after an end; ends with the scope. */
export const session = (
  server: PostgresServer,
  schema: string,
  { begun, heard }: Beginning,
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
    // It is over either way: what is still asked of it fails by itself.
    client.end().catch(() => {})
  }
  const connect = async (client: pg.Client) => {
    current = client
    client.on("error", () => forget(client))
    client.on("end", () => forget(client))
    client.on("notification", ({ payload = "" }) => heard?.(payload))
    try {
      await client.connect()
      await begun(client)
      return client
    } catch (cause) {
      end(client)
      throw cause
    }
  }
  const client = async () => {
    // This throws, and so nothing is opening, where the URL names a file that is not there.
    opening ??= connect(new pg.Client({ ...sessionOf(server, schema, lazily), pipeline: true }))
    return await opening
  }
  const drop = () => {
    if (current !== undefined) end(current)
  }
  const run = <A>(work: (client: pg.Client) => Promise<A>) =>
    Effect.suspend(() => {
      let used: pg.Client | undefined
      const working = async () => {
        used = await client()
        return await work(used)
      }
      // What fails late, of a session that is over, does not end the one after it.
      return Effect.tryPromise({ try: working, catch: failureOf }).pipe(
        Effect.onError(() => Effect.sync(() => (used === undefined ? drop() : end(used)))),
      )
    })

  const made: Session = { client, isCurrent: (one) => current === one, run, drop }
  return Effect.acquireRelease(Effect.succeed(made), () => Effect.sync(drop))
}
