/** Connection settings of a PostgreSQL server, and the setup of its sessions. */
import { Redacted } from "effect"
import pg from "pg"

export interface PostgresServer {
  /** `postgresql://user@host/database`, with libpq's parameters. */
  readonly connection: string
  /** Empty if the server needs none or `PGPASSWORD` has it. */
  readonly password: Redacted.Redacted<string>
  /** The statement timeout of readers, in seconds. */
  readonly statement_timeout_seconds: number
  /** The lock timeout, in seconds. */
  readonly lock_timeout_seconds: number
}

/** The connection timeout, in milliseconds. */
const connect_ms_max = 5_000

/** The statement timeout of writers and operators, in seconds. */
const statement_s_max = 60

/** Extra time for the server's response after its own timeout, in milliseconds. */
const response_grace_ms = 5_000

/** The driver returns these types as strings; all of our values are exact as numbers. */
const numeric_types: ReadonlySet<number> = new Set([
  pg.types.builtins.INT8,
  pg.types.builtins.NUMERIC,
])

const types: pg.CustomTypesConfig = {
  getTypeParser: (type, format) =>
    numeric_types.has(type) ? Number : pg.types.getTypeParser(type, format),
}

/**
 * The URL with the password, and with these settings last, so that they override the URL's. Built
 * as a string, because libpq URLs may have a user without a host.
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
 * The settings of a session on this schema only. The server cancels statements after `statement_s`,
 * and waits for locks earlier.
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
  // Identifies the process in pg_stat_activity.
  application_name: `${schema}@${process.pid}`,
  connectionTimeoutMillis: connect_ms_max,
  // For a lost connection; otherwise the server's timeout comes first.
  query_timeout: statement_s * 1000 + response_grace_ms,
  keepAlive: true,
  types,
})
