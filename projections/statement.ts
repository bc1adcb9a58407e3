/**
 * Statements: Kysely queries compiled once and bound to the values of each event.
 *
 * Compiling a query costs ten times as much as running it, and a projection runs the same few
 * queries for every event of the log.
 */
import {
  type Compilable,
  DummyDriver,
  Kysely,
  SqliteAdapter,
  SqliteIntrospector,
  SqliteQueryCompiler,
} from "kysely"

/** One write to a read model, ready to run. */
export interface Write {
  readonly sql: string
  readonly parameters: ReadonlyArray<unknown>
}

/** Compiles queries without running any. */
export const compiler = <Tables>() =>
  new Kysely<Tables>({
    dialect: {
      createAdapter: () => new SqliteAdapter(),
      createDriver: () => new DummyDriver(),
      createIntrospector: (db) => new SqliteIntrospector(db),
      createQueryCompiler: () => new SqliteQueryCompiler(),
    },
  })

interface Slot {
  readonly slot: string
}

const isSlot = (parameter: unknown): parameter is Slot =>
  typeof parameter === "object" && parameter !== null && "slot" in parameter

/**
 * A statement over `Tables`, built from named values.
 *
 * `build` runs once, with a placeholder for each value: it may place values, but never inspect
 * them.
 */
export const statement =
  <Tables>() =>
  <Values extends object>(build: (db: Kysely<Tables>, values: Values) => Compilable) => {
    const slots = new Proxy({}, { get: (_, name) => ({ slot: String(name) }) })
    // The placeholders stand in for the values in this one call.
    const { sql, parameters } = build(compiler<Tables>(), slots as Values).compile()
    const names = parameters.map((parameter) => (isSlot(parameter) ? parameter.slot : undefined))

    return (values: Values): Write => ({
      sql,
      parameters: names.map((name, i) =>
        name === undefined ? parameters[i] : Reflect.get(values, name),
      ),
    })
  }
