/** A server that is stopped during startup. */
import { readdirSync } from "node:fs"
import { afterAll, expect, it } from "vitest"
import { describeWithServer } from "../../world/programs/nats.ts"
import { cleanUp, natsServersOn, newFolder, startVerb } from "../../world/server/server.ts"

afterAll(cleanUp)

describeWithServer("a start that is interrupted", () => {
  it("ends in order and leaves no partial files, at any moment", async () => {
    const data_dir = newFolder()
    for (let ms = 300; ms <= 2100; ms += 300) {
      const { child, ended, printed } = startVerb(data_dir, ["serve"])
      // Before the process installs its handler, the signal itself ends it.
      setTimeout(() => child.kill("SIGTERM"), ms)
      const { code, signal } = await ended
      expect(["0 null", "null SIGTERM"]).toContain(`${code} ${signal}`)
      expect(printed.stderr).not.toContain("failed")
      expect(natsServersOn(data_dir)).toEqual([])
      const names = readdirSync(data_dir, { recursive: true, encoding: "utf8" })
      expect(names.filter((name) => /\.tmp$|almanac\.pid$|instance\.json$/.test(name))).toEqual([])
    }
  })
})
