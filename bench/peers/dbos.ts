/** DBOS: a workflow whose one step is the hand-written command, then the read. */
import type { Contestant } from "../harness/contestant.ts"
import { type Command, inTurn } from "../log/work.ts"
import { installed } from "./installed.ts"
import { database, handle, mustRead } from "./postgres.ts"

/** What is used of the package. */
interface Dbos {
  readonly DBOS: {
    readonly setConfig: (config: Record<string, unknown>) => void
    readonly registerWorkflow: (
      run: (command: Command) => Promise<void>,
      config: { readonly name: string },
    ) => (command: Command) => Promise<void>
    readonly runStep: (
      step: () => Promise<void>,
      config: { readonly name: string },
    ) => Promise<void>
    readonly launch: () => Promise<void>
    readonly shutdown: () => Promise<void>
  }
}

/** As many connections for its own tables as the application's pool has; its default is 10. */
const connections_max = 16

export const dbos: Contestant = {
  name: "dbos",
  start: async (home) => {
    const { DBOS } = await installed<Dbos>("@dbos-inc/dbos-sdk")
    const pool = await database(home.postgres, "dbos_application")
    const socket = encodeURIComponent(home.postgres ?? "")
    DBOS.setConfig({
      name: "bench",
      systemDatabaseUrl: `postgresql://postgres@localhost/dbos_system?host=${socket}`,
      systemDatabasePoolSize: connections_max,
      logLevel: "error",
    })
    const workflow = DBOS.registerWorkflow(
      (command) => DBOS.runStep(() => handle(pool, command), { name: "append" }),
      { name: "command" },
    )
    await DBOS.launch()
    return {
      run: inTurn(async (command) => {
        await workflow(command)
        await mustRead(pool, command)
      }),
      stop: async () => {
        await DBOS.shutdown()
        await pool.end()
      },
    }
  },
}
