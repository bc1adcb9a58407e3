/** The database of a read model. It is disposable: the log can rebuild it. */
import { Context, type Effect, Schema, type Scope } from "effect"
import type { Kysely } from "kysely"
import type { Write } from "#projections/statement.ts"

/** Progress of a database: the last commit that it shows. */
export interface Checkpoint {
  readonly position: number
  readonly hash: string
}

/**
 * The database cannot be created at its path, or the path has a foreign file, which is untouched.
 */
export class DatabaseUnusable extends Schema.TaggedError<DatabaseUnusable>()("DatabaseUnusable", {
  detail: Schema.String,
}) {
  // The report of a command that ends with this failure.
  override get message() {
    return this.detail
  }
}

/** State of the database's place: this database, nothing of value, or a foreign file. */
export type Place = "own" | "lost" | "foreign"

/** A SQLite value in JSON: a large integer as digits, bytes as hexadecimal. */
export type DumpValue = string | number | null

/** A row that differs between a read model and its rebuild. */
export interface RowDifference {
  readonly table: string
  /** The row's key, or the whole row if the table has no key. */
  readonly key: Readonly<Record<string, DumpValue>>
  /** `extra` is only in the stored model, `missing` only in the rebuild. */
  readonly kind: "changed" | "extra" | "missing"
  /** Differing columns of a changed row. */
  readonly columns: ReadonlyArray<{
    readonly column: string
    readonly kept: DumpValue
    readonly rebuilt: DumpValue
  }>
}

export interface Differences {
  /** Number of tables compared. */
  readonly tables: number
  /** Number of differing rows; only the first of them are listed. */
  readonly count: number
  readonly rows: ReadonlyArray<RowDifference>
}

/** A comparison in progress, over a snapshot of the stored model. */
export interface DatabaseComparison {
  readonly position: number
  /** Run once, when the rebuild shows the same position. */
  readonly differences: Effect.Effect<Differences, DatabaseUnusable>
}

export interface Database<Tables> {
  /** For queries bounded by a key or a page: runs in this thread. */
  readonly db: Kysely<Tables>
  /** For long or unbounded queries: read-only, in a thread of its own. */
  readonly reader: Kysely<Tables>
  /** The last commit shown, as far as this process knows; position 0 if none. */
  readonly checkpoint: () => Checkpoint
  /** Runs the writes and moves the checkpoint in one transaction. */
  readonly apply: (
    writes: ReadonlyArray<Write>,
    checkpoint: Checkpoint,
  ) => Effect.Effect<void, DatabaseUnusable>
  /**
   * Like `apply`, but runs `pause` after each slice of the writes: other fibers get the thread
   * while the transaction is open, but no other process can write. An interruption leaves no
   * changes.
   */
  readonly applySlowly: (
    slices: Iterable<ReadonlyArray<Write>>,
    checkpoint: Checkpoint,
    pause: Effect.Effect<void>,
  ) => Effect.Effect<void, DatabaseUnusable>
  /** An empty database next to this one, with the same tables. */
  readonly shadow: Effect.Effect<Database<Tables>, DatabaseUnusable, Scope.Scope>
  /**
   * Replaces this database with the one next to it; `db` and `reader` then read the new one.
   * Returns false, without any change, if another process has moved this one further in the
   * meantime. `foreign` is the checkpoint of another log that this database shows, if any: that one
   * is replaced at any position.
   */
  readonly replace: (
    beside: Database<Tables>,
    foreign?: Checkpoint,
  ) => Effect.Effect<boolean, DatabaseUnusable>
  /** Starts a comparison with the database next to it; lists at most `rows_max` rows. */
  readonly compare: (
    beside: Database<Tables>,
    rows_max: number,
  ) => Effect.Effect<DatabaseComparison, DatabaseUnusable, Scope.Scope>
  /** Whether other processes find this database at its location: its file may have been deleted. */
  readonly place: () => Place
  /** Every row of every table, in a fixed order: equal for two databases of one log. */
  readonly dump: Effect.Effect<Dump, DatabaseUnusable>
  /** Present if several processes share the database; absent if this process owns it. */
  readonly sharing?: Sharing
}

/** Rows by table, each as JSON. */
export type Dump = Readonly<Record<string, ReadonlyArray<string>>>

/** How processes share a database: one writes, the others watch its checkpoint. */
export interface Sharing {
  /**
   * Waits until no other process writes; this process may then write until the scope closes. It can
   * lose that right earlier (if it was suspended, for example): its writes then fail.
   */
  readonly turn: Effect.Effect<void, DatabaseUnusable, Scope.Scope>
  /** Runs `moved` whenever another process moves the checkpoint; never ends. */
  readonly watch: (moved: () => void) => Effect.Effect<never>
  /** Whether the last query reached the database. */
  readonly isReachable: () => boolean
}

export interface Design<Tables> {
  readonly service: string
  /** Increases whenever a table's definition changes: each version has a database of its own. */
  readonly version: number
  /** The statements that create the tables, as this database compiles them. */
  readonly create: (compiles: Kysely<Tables>) => ReadonlyArray<string>
}

export class Databases extends Context.Service<
  Databases,
  {
    /** Opens the service's database, creating it if missing, and removes older versions of it. */
    readonly open: <Tables>(
      design: Design<Tables>,
    ) => Effect.Effect<Database<Tables>, DatabaseUnusable, Scope.Scope>
  }
>()("projections/Databases") {}
