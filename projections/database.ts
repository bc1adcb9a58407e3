/** The database of a read model. All of it may be dropped: the log builds it again. */
import { Context, type Effect, Schema, type Scope } from "effect"
import type { Kysely } from "kysely"
import type { Write } from "#projections/statement.ts"

/** How far a database has come: the last commit that it shows. */
export interface Checkpoint {
  readonly position: number
  readonly hash: string
}

/** Where a database is to be it cannot be, or something else is: what is there was left alone. */
export class DatabaseUnusable extends Schema.TaggedError<DatabaseUnusable>()("DatabaseUnusable", {
  detail: Schema.String,
}) {
  // What a verb says of a failure that ends it.
  override get message() {
    return this.detail
  }
}

/** What is at the database's place: itself, nothing of worth, or what is not ours to remove. */
export type Place = "own" | "lost" | "foreign"

/** A value of SQLite as JSON has it: a large integer is its digits, bytes are hexadecimal. */
export type ShownValue = string | number | null

/** A row that is not the same in a read model and in its rebuild. */
export interface RowDifference {
  readonly table: string
  /** The row's key; all of the row where the table has none. */
  readonly key: Readonly<Record<string, ShownValue>>
  /** `extra` is in what is kept alone, `missing` in what was rebuilt alone. */
  readonly kind: "changed" | "extra" | "missing"
  /** What differs in a changed row. */
  readonly columns: ReadonlyArray<{
    readonly column: string
    readonly kept: ShownValue
    readonly rebuilt: ShownValue
  }>
}

export interface Differences {
  /** Tables that were compared. */
  readonly tables: number
  /** Rows that differ; only the first of them are told. */
  readonly count: number
  readonly rows: ReadonlyArray<RowDifference>
}

/** A comparison that has begun: what is kept is seen as it was then. */
export interface Comparing {
  readonly position: number
  /** Asked once, when the other shows the same position. */
  readonly differences: Effect.Effect<Differences, DatabaseUnusable>
}

export interface Database<Tables> {
  /** For what a key or a page bounds: it runs in this thread. */
  readonly db: Kysely<Tables>
  /** For what is long or unbounded: it runs in a thread of its own, and only reads. */
  readonly reader: Kysely<Tables>
  /** The last commit shown, as far as this process knows; position 0 when there is none. */
  readonly checkpoint: () => Checkpoint
  /** Runs the writes and moves the checkpoint, in one transaction. */
  readonly apply: (
    writes: ReadonlyArray<Write>,
    checkpoint: Checkpoint,
  ) => Effect.Effect<void, DatabaseUnusable>
  /**
   * As `apply`, and after each slice of the writes `pause` runs: others have the thread while the
   * transaction is open, but nobody else may write. It leaves nothing where it is interrupted.
   */
  readonly applySlowly: (
    slices: Iterable<ReadonlyArray<Write>>,
    checkpoint: Checkpoint,
    pause: Effect.Effect<void>,
  ) => Effect.Effect<void, DatabaseUnusable>
  /** An empty database beside this one, with the same tables. */
  readonly beside: Effect.Effect<Database<Tables>, DatabaseUnusable, Scope.Scope>
  /**
   * Puts the one beside in this one's place; `db` and `reader` show it from then on. False where
   * another process has brought this one further meanwhile: then nothing was done. `foreign` is
   * what this one shows of another log, where it does: that goes, however far it is.
   */
  readonly replace: (
    beside: Database<Tables>,
    foreign?: Checkpoint,
  ) => Effect.Effect<boolean, DatabaseUnusable>
  /** Begins to compare with the one beside; at most `rows_max` rows are told. */
  readonly compare: (
    beside: Database<Tables>,
    rows_max: number,
  ) => Effect.Effect<Comparing, DatabaseUnusable, Scope.Scope>
  /** Whether others who look at the place find this database: a file may have been deleted. */
  readonly place: () => Place
  /** Every row of every table, in a fixed order: two databases of one log are equal in it. */
  readonly dump: Effect.Effect<Dump, DatabaseUnusable>
  /** Of a database that several processes have; absent where it is this process's alone. */
  readonly sharing?: Sharing
}

/** Rows by table, each as JSON. */
export type Dump = Readonly<Record<string, ReadonlyArray<string>>>

/** How processes share a database: one writes, the others see it move. */
export interface Sharing {
  /**
   * Waits until no other process writes; then this one may, until the scope closes. It may be
   * taken away before (from a process that was stopped, say): writes fail from then on.
   */
  readonly turn: Effect.Effect<void, DatabaseUnusable, Scope.Scope>
  /** Runs `moved` whenever the checkpoint was moved by another process; it never ends. */
  readonly watch: (moved: () => void) => Effect.Effect<never>
  /** Whether the database could be reached when it was last asked. */
  readonly is_reached: () => boolean
}

export interface Design<Tables> {
  readonly service: string
  /** Rises when a table changes its shape: another version is another database. */
  readonly version: number
  /** The statements that create the tables, as this database compiles them. */
  readonly create: (compiles: Kysely<Tables>) => ReadonlyArray<string>
}

export class Databases extends Context.Service<
  Databases,
  {
    /** Opens the service's database, made when there is none; older versions of it are removed. */
    readonly open: <Tables>(
      design: Design<Tables>,
    ) => Effect.Effect<Database<Tables>, DatabaseUnusable, Scope.Scope>
  }
>()("projections/Databases") {}
