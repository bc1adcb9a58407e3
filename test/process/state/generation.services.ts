/** A generation that is killed after each of its steps in turn, with real processes. */
import { afterAll, expect, it } from "vitest"
import { describeWithServer } from "../../world/programs/nats.ts"
import { cleanUp, newFolder, startServer } from "../../world/server/server.ts"
import { environment, killedAfter } from "./generation-kill.ts"

/** Takes minutes on a busy machine: seven starts per step. */
const test_ms_max = 900_000
const steps_max = 20

afterAll(cleanUp)

describeWithServer("a new generation of the log, killed anywhere", () => {
  it(
    "is the old one or the new one, whole, and is begun again",
    async () => {
      const whole = newFolder()
      const server = await startServer(whole, environment)
      await server.stop()
      let steps = 0
      while (steps < steps_max && (await killedAfter(whole, steps + 1))) steps++
      expect(steps).toBeGreaterThanOrEqual(7)
    },
    test_ms_max,
  )
})
