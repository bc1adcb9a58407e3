/** `kill -9` of a server: no process that it started outlives it. */
import { afterAll, expect, it } from "vitest"
import { describeWithServer } from "../../world/programs/nats.ts"
import {
  childrenOf,
  cleanUp,
  isRunning,
  newFolder,
  startServer,
  until,
} from "../../world/server/server.ts"

/** Its nats-server stops gracefully in 0.1 s; processes that do not are killed after 1.5 s. */
const gone_ms_max = 10_000

afterAll(cleanUp)

const descendantsOf = (pid: number): ReadonlyArray<number> =>
  childrenOf(pid).flatMap((child) => [child, ...descendantsOf(child)])

describeWithServer("a server that is killed alone", () => {
  it("leaves no process behind", async () => {
    const server = await startServer(newFolder())
    const descendants = descendantsOf(server.pid)
    expect(descendants.length).toBeGreaterThanOrEqual(2)
    await server.killAlone()
    await until("all to be gone", gone_ms_max, () => !descendants.some(isRunning))
  })
})
