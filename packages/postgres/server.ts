/** How a PostgreSQL server is reached, and how its sessions are set up. */
import { Redacted } from "effect"
import pg from "pg"

export interface PostgresServer {
  /** `postgresql://user@host/database`, with libpq's parameters. */
  readonly connection: string
  /** Empty where the server or `PGPASSWORD` knows. */
  readonly password: Redacted.Redacted<string>
  /** Seconds for what a reader asks; the server ends it then. */
  readonly statement_timeout_seconds: number
  /** Seconds that a statement waits for what another session has locked. */
  readonly lock_timeout_seconds: number
}

/** Milliseconds until a server that does not answer a connection is given up. */
const connect_ms_max = 5_000

/** Seconds for a statement of a writer or an operator: a table that goes, a row of a cursor. */
const statement_s_max = 60

/** Milliseconds after the server's own bound in which its answer may still be on its way. */
const way_ms_max = 5_000

/** PostgreSQL has bigint and numeric as texts; ours are all exact as numbers. */
const numeric_types: ReadonlySet<number> = new Set([
  pg.types.builtins.INT8,
  pg.types.builtins.NUMERIC,
])

const types: pg.CustomTypesConfig = {
  getTypeParser: (type, format) =>
    numeric_types.has(type) ? Number : pg.types.getTypeParser(type, format),
}

/**
 * The URL with its password, which is nowhere else in clear, and with these settings after its own:
 * whatever it says, it is ours that hold. As a text, since libpq's may have a user and no host.
 */
const urlOf = ({ connection, password }: PostgresServer, settings: ReadonlyArray<string>) => {
  const [place = ""] = connection.split("?", 1)
  const parameters = new URLSearchParams(connection.slice(place.length))
  const options = settings.map((setting) => `-c ${setting}`)
  parameters.set("options", [...parameters.getAll("options"), ...options].join(" "))
  const secret = Redacted.value(password)
  if (secret !== "") parameters.set("password", secret)
  return `${place}?${parameters}`
}

/**
 * A session that finds the tables of this schema, of our names and nothing else's. The server ends
 * what it asks after `statement_s`, and what waits for a lock before that.
 */
export const sessionOf = (
  server: PostgresServer,
  schema: string,
  settings: ReadonlyArray<string> = [],
  statement_s = statement_s_max,
): pg.ClientConfig => ({
  connectionString: urlOf(server, [
    `search_path=${schema}`,
    `statement_timeout=${statement_s}s`,
    `lock_timeout=${server.lock_timeout_seconds}s`,
    ...settings,
  ]),
  // Whose session it is, for who looks into pg_stat_activity.
  application_name: `${schema}@${process.pid}`,
  connectionTimeoutMillis: connect_ms_max,
  // For what the network lost: whatever arrives is ended by the server before.
  query_timeout: statement_s * 1000 + way_ms_max,
  keepAlive: true,
  types,
})
