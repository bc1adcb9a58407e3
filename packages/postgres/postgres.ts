/**
 * Read models in PostgreSQL: one schema for each service and version of its tables, which several
 * processes share. One of them writes, and all read.
 *
 * Who writes is a lock of the server's, so that no work is done twice; that nothing is written
 * twice is the checkpoint's doing, which each transaction moves from where the writer knows it.
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
import { failureOf, isAway } from "./failure.ts"
import { postgresReader } from "./reader.ts"
import {
  besideOf,
  dropSchema,
  dumpOf,
  exchange,
  locks,
  lockUsed,
  makeTables,
  nothing,
  readCheckpoint,
  replacedOf,
  schemaOf,
  tryLock,
} from "./schema.ts"
import type { PostgresServer } from "./server.ts"
import { type Session, session } from "./session.ts"
import { postgresSharing } from "./sharing.ts"
import { tended } from "./sweep.ts"
import { postgresWrites, toldOf } from "./writes.ts"

export { locks } from "./schema.ts"
export { type PostgresServer, sessionOf } from "./server.ts"
export { session } from "./session.ts"
export { tended } from "./sweep.ts"

export interface PostgresOptions extends PostgresServer {
  /** Whether this process may write; one that may not sees what others write. */
  readonly is_writer: boolean
}

/** Sessions for what a key or a page bounds, of a read model in a process. */
const short_sessions_max = 3

/** The same for what is long. A server takes 100 sessions of all processes by default. */
const long_sessions_max = 2

/** So often a rebuild asks whether another goes on. */
const lock_tries_max = 20

/** Pause between two of these questions, in milliseconds. */
const lock_pause_ms = 100

/** Pause before a server that cannot be reached at a start is asked again, in milliseconds. */
const start_pause_ms = 500

/** For so long, in milliseconds: a server that is started together with this one needs some. */
const start_ms_max = 30_000

/** How long the end of a rebuild waits to remove it, in milliseconds; the next one does it too. */
const leave_ms_max = 5_000

interface Opened<Tables> extends Database<Tables> {
  readonly session: Session
  readonly schema: string
}

interface Around<Tables> {
  readonly server: PostgresServer
  readonly design: Design<Tables>
  readonly schema: string
}

/** Only what `beside` answered is handed back: it is of this adapter. */
const openedOf = <Tables>(database: Database<Tables>) => database as Opened<Tables>

/** An empty database in a schema of its own; nobody else builds one meanwhile. */
const beside = Effect.fnUntraced(function* <Tables>({
  server,
  design,
  schema,
}: Around<Tables>): Effect.fn.Return<Opened<Tables>, DatabaseUnusable, Scope.Scope> {
  const place = besideOf(schema)
  let known = nothing
  let begins = 0
  const own = yield* session(server, place, {
    begun: async (client) => {
      // What an ended session had begun is begun anew by whoever asked.
      if (++begins > 1) throw new DatabaseUnusable({ detail: "Its rebuild was cut off." })
      // The server lets go of an ended session's lock a moment after its client is gone.
      for (let tries = 1; !(await tryLock(client, locks.built, schema)); tries += 1) {
        if (tries === lock_tries_max) {
          throw new DatabaseUnusable({ detail: "Another process builds it again." })
        }
        await setTimeout(lock_pause_ms)
      }
      // What an earlier one left.
      await dropSchema(client, replacedOf(schema))
      await dropSchema(client, place)
      await makeTables(client, place, design)
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
    ...postgresWrites({ session: own, known: () => known, moved, permitted: Effect.void }),
    checkpoint: () => known,
    dump: own.run((client) => dumpOf(client, place)),
    place: () => "own",
    beside: Effect.fail(new DatabaseUnusable({ detail: "It is beside another already." })),
    replace: () => Effect.succeed(false),
    compare: () => Effect.fail(new DatabaseUnusable({ detail: "It is beside another." })),
  }
})

/** Waits for a server that is not up yet; one that refuses us is a failure at once. */
const reached = ({ client }: Session, schema: string) => {
  const connected = Effect.tryPromise({ try: client, catch: (cause) => cause })
  const schedule = Schedule.upTo(Schedule.spaced(start_pause_ms), { duration: start_ms_max })
  const again = Effect.retry(connected, { schedule, while: isAway })
  return connected.pipe(
    Effect.catchIf(isAway, (cause) =>
      Effect.andThen(Effect.logWarning(`${schema} waits: ${failureOf(cause).detail}`), again),
    ),
    Effect.mapError(failureOf),
  )
}

/** Puts tables that were built beside a schema's own in their place. */
const replacing =
  <Tables>(schema: string, moved: (checkpoint: Checkpoint) => void): Opened<Tables>["replace"] =>
  (other, foreign) => {
    const { session: building, checkpoint } = openedOf(other)
    // A reader that is longer than we wait leaves what was replaced to the next one.
    const tidied = Effect.ignore(building.run((client) => dropSchema(client, replacedOf(schema))))
    const done = Effect.andThen(
      Effect.sync(() => moved(checkpoint())),
      tidied,
    )
    return building
      .run((client) => exchange(client, { schema, foreign, position: checkpoint().position }))
      .pipe(Effect.tap((is_done) => (is_done ? done : Effect.void)))
  }

/** Opens a schema, made when there is none, and follows what others write there. */
const database = Effect.fnUntraced(function* <Tables>(
  { is_writer, ...server }: PostgresOptions,
  design: Design<Tables>,
): Effect.fn.Return<Opened<Tables>, DatabaseUnusable, Scope.Scope> {
  const schema = schemaOf(design)
  let known = nothing
  let seen = () => {}
  const moved = (checkpoint: Checkpoint) => {
    known = checkpoint
    seen()
  }
  const own = yield* session(server, schema, {
    begun: async (client) => {
      await lockUsed(client, schema)
      await makeTables(client, schema, design)
      await client.query(`listen ${schema}`)
      known = await readCheckpoint(client)
    },
    heard: (payload) => {
      // What this process wrote it knows as soon as it is answered.
      if (!sharing.isWriting()) moved(toldOf(payload))
    },
  })
  const sharing = postgresSharing({
    session: own,
    schema,
    is_writer,
    moved,
    onMoved: (run) => {
      seen = run
    },
  })
  yield* reached(own, schema)
  yield* tended(server, design)
  // Two pools: what is short never waits for what is long.
  const db = yield* postgresReader<Tables>(server, schema, short_sessions_max)
  const reader = yield* postgresReader<Tables>(server, schema, long_sessions_max)
  const { permitted } = sharing
  const writes = postgresWrites({
    session: own,
    channel: schema,
    known: () => known,
    moved,
    permitted,
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
    // Where it is gone, the next session makes it anew, and whoever writes fills it again.
    place: () => "own",
    beside: beside({ server, design, schema }),
    replace: replacing(schema, moved),
    compare: (other, rows_max) => {
      const rebuilt = openedOf(other).schema
      return postgresComparison(server, { kept: schema, rebuilt, rows_max })
    },
  }
  return opened
})

/** Databases in schemas of one PostgreSQL database, which is the deployment's own. */
export const postgres = (options: PostgresOptions) =>
  Layer.succeed(Databases, {
    open: <Tables>(design: Design<Tables>) => database<Tables>(options, design),
  })
