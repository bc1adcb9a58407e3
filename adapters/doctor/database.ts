/** Checks of `almanac doctor` on PostgreSQL, if read models are stored there. */
import pg from "pg"
import { type Finding, fail, ok, warn } from "#adapters/doctor/finding.ts"
import { type PostgresServer, sessionOf } from "#postgres"
import { causeText } from "#schemas/cause-text.ts"

/** Maximum connections of one process; others are needed by other processes and operators. */
const connections_min = 28

const query = `
  select current_setting('server_version') as version,
         current_setting('max_connections')::int as connections,
         has_database_privilege(current_user, current_database(), 'create') as may_create`

interface Row {
  readonly version: string
  readonly connections: number
  readonly may_create: boolean
}

/** Checks that it responds, allows enough connections, and lets us create schemas. */
export const databaseFindings = async (server: PostgresServer): Promise<ReadonlyArray<Finding>> => {
  let client: pg.Client | undefined
  try {
    client = new pg.Client(sessionOf(server, "almanac_doctor"))
    // A lost connection is reported by the query.
    client.on("error", () => undefined)
    await client.connect()
    const [row] = (await client.query<Row>(query)).rows
    if (row === undefined) return [fail("database", "PostgreSQL returned no rows.")]
    const { version, connections, may_create } = row
    if (!may_create) {
      return [
        fail(
          "database",
          "The PostgreSQL user may not create schemas: grant create on the database.",
        ),
      ]
    }
    const summary = `PostgreSQL ${version}, ${connections} connections`
    return [
      connections < connections_min
        ? warn("database", `${summary}: each process can need ${connections_min}.`)
        : ok("database", summary),
    ]
  } catch (cause) {
    const reason = causeText(cause)
    return [fail("database", `PostgreSQL cannot be used: ${reason}.`)]
  } finally {
    await client?.end().catch(() => undefined)
  }
}
