/** DBOS: a workflow whose only step is the hand-written command, followed by the read. */
import type { Contestant } from "../harness/contestant.ts"
import { type Command, inTurn } from "../log/work.ts"
import { installed } from "./installed.ts"
import { database, handle, mustRead } from "./postgres.ts"

/** The part of the package that is used here. */
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

/**
 * The same number of connections for its own tables as in the application's pool; its default is
 * 10.
 */
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
