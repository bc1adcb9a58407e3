/** What `almanac doctor` finds of PostgreSQL, where read models are kept there. */
import pg from "pg"
import { type Finding, fail, ok, warn } from "#adapters/doctor/finding.ts"
import { type PostgresServer, sessionOf } from "#postgres"
import { causeText } from "#schemas/cause-text.ts"

/** Connections that one process may want; the rest is for others and for operators. */
const connections_min = 28

const answer = `
  select current_setting('server_version') as version,
         current_setting('max_connections')::int as connections,
         has_database_privilege(current_user, current_database(), 'create') as may_create`

interface Row {
  readonly version: string
  readonly connections: number
  readonly may_create: boolean
}

/** Whether it answers, has room, and lets us make our schemas. */
export const databaseFindings = async (server: PostgresServer): Promise<ReadonlyArray<Finding>> => {
  let client: pg.Client | undefined
  try {
    client = new pg.Client(sessionOf(server, "almanac_doctor"))
    // What ends the session is told where something is asked.
    client.on("error", () => undefined)
    await client.connect()
    const [row] = (await client.query<Row>(answer)).rows
    if (row === undefined) return [fail("database", "PostgreSQL answers nothing.")]
    const { version, connections, may_create } = row
    if (!may_create) {
      return [fail("database", "PostgreSQL's user may make no schema: grant create on database.")]
    }
    const told = `PostgreSQL ${version}, ${connections} connections`
    return [
      connections < connections_min
        ? warn("database", `${told}: each process may want ${connections_min}.`)
        : ok("database", told),
    ]
  } catch (cause) {
    const why = causeText(cause)
    return [fail("database", `PostgreSQL cannot be used: ${why}.`)]
  } finally {
    await client?.end().catch(() => undefined)
  }
}
