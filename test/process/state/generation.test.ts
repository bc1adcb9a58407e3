/** A new generation of the log, as an operator begins one: stopped, killed, and served again. */
import { readdirSync, rmSync } from "node:fs"
import { join } from "node:path"
import { afterAll, expect, it } from "vitest"
import { describeWithServer } from "../../world/programs/nats.ts"
import { hashed, putBlob } from "../../world/server/blob-client.ts"
import { connect } from "../../world/server/client.ts"
import {
  cleanUp,
  newFolder,
  runVerb,
  type Server,
  startServer,
  until,
} from "../../world/server/server.ts"
import {
  begun_step,
  environment,
  generationVerb,
  headOf,
  killedAfter,
  replayedUpTo,
} from "./generation-kill.ts"

/** A whole series of starts, on a machine that runs several tasks at once. */
const test_ms_max = 300_000
const soon_ms = 60_000

afterAll(cleanUp)

const admin = ({ url, credentials }: Server) => connect(url, credentials.admin.token)

interface Events {
  readonly events: ReadonlyArray<{
    readonly position: number
    readonly type: string
    readonly subject: string
  }>
}

/** Puts blobs and waits for their audit events; returns their ids. */
const stored = async (server: Server, texts: ReadonlyArray<string>) => {
  const client = connect(server.url, server.credentials.blob.token)
  const operator = admin(server)
  const ids: Array<string> = []
  for (const text of texts) {
    const bytes = Buffer.from(text)
    expect((await putBlob(client, bytes, "raw")).status).toBe(200)
    ids.push(hashed(bytes).id)
  }
  await until("the blobs' events", soon_ms, async () => {
    const { events } = await operator.json<Events>("GET", "/v1/admin/audit?type=BlobStored")
    return ids.every((id) => events.some(({ subject }) => subject === id))
  })
  client.close()
  operator.close()
  return ids
}

describeWithServer("a new generation of the log", () => {
  it(
    "is served as the old one was, whole, and answers what happened before it",
    async () => {
      const folder = newFolder()
      const first = await startServer(folder, environment)
      const ids = await stored(first, ["one", "two", "three"])
      const while_running = await runVerb(folder, ["log", "roll"], environment)
      expect(while_running.code).not.toBe(0)
      expect(while_running.stderr).toContain("stop it first")
      await first.stop()

      const last = await headOf(folder)
      const before = await replayedUpTo(folder, last)
      expect(await generationVerb(folder, "log", "roll")).toMatch(
        /^generation 2 begins after position \d+/,
      )
      expect(readdirSync(join(folder, "log")).sort()).toEqual([
        "generation-1.json",
        "generation-1.ndjson.gz",
      ])
      expect(await replayedUpTo(folder, last)).toBe(before)

      const second = await startServer(folder, environment)
      const operator = admin(second)
      const more = await stored(second, ["four"])
      const { events } = await operator.json<Events>(
        "GET",
        "/v1/admin/audit?type=BlobStored&order=asc",
      )
      expect(events.map(({ subject }) => subject)).toEqual([...ids, ...more])
      const figures = await operator.json<{ generation: number }>("GET", "/v1/admin/log")
      expect(figures.generation).toBe(2)
      const rebuilt = await generationVerb(folder, "rebuild", "--diff")
      expect(rebuilt).toContain("system: matches the log")
      expect(rebuilt).toContain("blob-storage: matches the log")
      operator.close()
      await second.stop()
      expect(await generationVerb(folder, "audit", "verify")).toMatch(/^intact: /)
      rmSync(join(folder, "log", "generation-1.ndjson.gz"))
      const without = await runVerb(folder, ["serve"], environment)
      expect(without.code).toBe(1)
      expect(without.stderr.trim().split("\n").at(-1)).toMatch(/^almanac: Generation 1 of the log /)
    },
    test_ms_max,
  )

  it(
    "killed with all but its first commit written, is still the old one, and starts again",
    async () => {
      const whole = newFolder()
      const server = await startServer(whole, environment)
      await stored(server, ["one", "two"])
      await server.stop()
      // For all other steps see generation.services.ts, and log-generations.test.ts in one process.
      expect(await killedAfter(whole, begun_step - 1)).toBe(true)
    },
    test_ms_max,
  )
})
