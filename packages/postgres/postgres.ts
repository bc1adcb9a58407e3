/**
 * Read models in PostgreSQL: one schema per service and table version, shared by several processes.
 * One of them writes, all of them read.
 *
 * An advisory lock elects the writer, which avoids duplicate work. Correctness depends only on the
 * checkpoint: each transaction advances it from the position that the writer expects.
 */
import { setTimeout } from "node:timers/promises"
import { Effect, Layer, Schedule, type Scope } from "effect"
import {
  type Checkpoint,
  type Database,
  Databases,
  DatabaseUnusable,
  type Design,
} from "#projections/database.ts"
import { postgresComparison } from "./comparison.ts"
import { failureOf, isUnavailable } from "./failure.ts"
import { postgresReader } from "./reader.ts"
import {
  buildingOf,
  createTables,
  dropSchema,
  dumpOf,
  empty_checkpoint,
  locks,
  lockUsed,
  readCheckpoint,
  replacedOf,
  schemaOf,
  swapSchemas,
  tryLock,
} from "./schema.ts"
import type { PostgresServer } from "./server.ts"
import { type Session, session } from "./session.ts"
import { postgresSharing } from "./sharing.ts"
import { sweepPeriodically } from "./sweep.ts"
import { parseCheckpoint, postgresWrites } from "./writes.ts"

export { locks } from "./schema.ts"
export { type PostgresServer, sessionOf } from "./server.ts"
export { session } from "./session.ts"
export { sweepPeriodically } from "./sweep.ts"

export interface PostgresOptions extends PostgresServer {
  /** Whether this process may write; otherwise it only reads. */
  readonly is_writer: boolean
}

/** Sessions per read model and process for short queries: by key or page. */
const short_sessions_max = 3

/** Sessions for long queries. A server allows 100 sessions in total by default. */
const long_sessions_max = 2

/** Attempts of a rebuild to acquire the lock. */
const lock_tries_max = 20

/** The pause between these attempts, in milliseconds. */
const lock_pause_ms = 100

/** The pause between attempts to reach the server at startup, in milliseconds. */
const start_pause_ms = 500

/** How long startup waits for a server that is starting too, in milliseconds. */
const start_ms_max = 30_000

/** How long to wait for the removal of a rebuild's schema; the next rebuild removes it too. */
const leave_ms_max = 5_000

interface Opened<Tables> extends Database<Tables> {
  readonly session: Session
  readonly schema: string
}

interface Origin<Tables> {
  readonly server: PostgresServer
  readonly design: Design<Tables>
  readonly schema: string
}

/** Callers pass only a database of `shadow`. */
const openedOf = <Tables>(database: Database<Tables>) => database as Opened<Tables>

/** An empty database for a rebuild, in a second schema. A lock excludes other rebuilds. */
const openShadow = Effect.fnUntraced(function* <Tables>({
  server,
  design,
  schema,
}: Origin<Tables>): Effect.fn.Return<Opened<Tables>, DatabaseUnusable, Scope.Scope> {
  const place = buildingOf(schema)
  let known = empty_checkpoint
  let connections = 0
  const own = yield* session(server, place, {
    onConnected: async (client) => {
      // A new session cannot continue the rebuild of a lost one: the caller starts again.
      if (++connections > 1) throw new DatabaseUnusable({ detail: "The rebuild lost its session." })
      // The server releases the lock shortly after the previous client has disconnected.
      for (let tries = 1; !(await tryLock(client, locks.built, schema)); tries += 1) {
        if (tries === lock_tries_max) {
          throw new DatabaseUnusable({ detail: "Another process is rebuilding it." })
        }
        await setTimeout(lock_pause_ms)
      }
      // Left by an earlier rebuild.
      await dropSchema(client, replacedOf(schema))
      await dropSchema(client, place)
      await createTables(client, place, design)
    },
  })
  yield* own.run(() => Promise.resolve())
  const db = yield* postgresReader<Tables>(server, place, 1)
  yield* Effect.addFinalizer(() =>
    own
      .run((client) => dropSchema(client, place))
      .pipe(Effect.timeoutOption(leave_ms_max), Effect.ignore),
  )
  const moved = (checkpoint: Checkpoint) => {
    known = checkpoint
  }
  return {
    db,
    reader: db,
    session: own,
    schema: place,
    ...postgresWrites({ session: own, known: () => known, moved, requireWriter: Effect.void }),
    checkpoint: () => known,
    dump: own.run((client) => dumpOf(client, place)),
    place: () => "own",
    shadow: Effect.fail(new DatabaseUnusable({ detail: "This database is a rebuild itself." })),
    replace: () => Effect.succeed(false),
    compare: () => Effect.fail(new DatabaseUnusable({ detail: "This database is a rebuild." })),
  }
})

/** Waits for a server that is starting; fails immediately if the server rejects us. */
const waitForServer = ({ client }: Session, schema: string) => {
  const connected = Effect.tryPromise({ try: client, catch: (cause) => cause })
  const schedule = Schedule.upTo(Schedule.spaced(start_pause_ms), { duration: start_ms_max })
  const again = Effect.retry(connected, { schedule, while: isUnavailable })
  return connected.pipe(
    Effect.catchIf(isUnavailable, (cause) =>
      Effect.andThen(Effect.logWarning(`${schema} is waiting: ${failureOf(cause).detail}`), again),
    ),
    Effect.mapError(failureOf),
  )
}

/** Replaces a schema with its rebuild. */
const replaceWith =
  <Tables>(schema: string, moved: (checkpoint: Checkpoint) => void): Opened<Tables>["replace"] =>
  (other, foreign) => {
    const { session: building, checkpoint } = openedOf(other)
    // If a long reader blocks the removal, the next rebuild removes the old schema.
    const dropReplaced = Effect.ignore(
      building.run((client) => dropSchema(client, replacedOf(schema))),
    )
    const done = Effect.andThen(
      Effect.sync(() => moved(checkpoint())),
      dropReplaced,
    )
    return building
      .run((client) => swapSchemas(client, { schema, foreign, position: checkpoint().position }))
      .pipe(Effect.tap((is_done) => (is_done ? done : Effect.void)))
  }

/** Opens or creates a schema and follows the writes of other processes. */
const database = Effect.fnUntraced(function* <Tables>(
  { is_writer, ...server }: PostgresOptions,
  design: Design<Tables>,
): Effect.fn.Return<Opened<Tables>, DatabaseUnusable, Scope.Scope> {
  const schema = schemaOf(design)
  let known = empty_checkpoint
  let notifyMoved = () => {}
  const moved = (checkpoint: Checkpoint) => {
    known = checkpoint
    notifyMoved()
  }
  const own = yield* session(server, schema, {
    onConnected: async (client) => {
      await lockUsed(client, schema)
      await createTables(client, schema, design)
      await client.query(`listen ${schema}`)
      known = await readCheckpoint(client)
    },
    onNotification: (payload) => {
      // The writer knows its own checkpoint already.
      if (!sharing.isWriting()) moved(parseCheckpoint(payload))
    },
  })
  const sharing = postgresSharing({
    session: own,
    schema,
    is_writer,
    moved,
    onMoved: (run) => {
      notifyMoved = run
    },
  })
  yield* waitForServer(own, schema)
  yield* sweepPeriodically(server, design)
  // Two pools, so that short queries never wait for long ones.
  const db = yield* postgresReader<Tables>(server, schema, short_sessions_max)
  const reader = yield* postgresReader<Tables>(server, schema, long_sessions_max)
  const { requireWriter } = sharing
  const writes = postgresWrites({
    session: own,
    channel: schema,
    known: () => known,
    moved,
    requireWriter,
  })
  const opened: Opened<Tables> = {
    ...writes,
    db,
    reader,
    session: own,
    schema,
    sharing: sharing.shared,
    checkpoint: () => known,
    dump: own.run((client) => dumpOf(client, schema)),
    // If the schema is dropped, the next session creates it and the writer fills it again.
    place: () => "own",
    shadow: openShadow({ server, design, schema }),
    replace: replaceWith(schema, moved),
    compare: (other, rows_max) => {
      const rebuilt = openedOf(other).schema
      return postgresComparison(server, { kept: schema, rebuilt, rows_max })
    },
  }
  return opened
})

/** The layer over one PostgreSQL database, which must belong to this deployment alone. */
export const postgres = (options: PostgresOptions) =>
  Layer.succeed(Databases, {
    open: <Tables>(design: Design<Tables>) => database<Tables>(options, design),
  })
