/**
 * A server whose log contains messages that no release wrote: all parts keep working and report
 * them.
 */
import assert from "node:assert/strict"
import { join } from "node:path"
import { afterAll, beforeAll, expect, it } from "vitest"
import { garbage, publishInto } from "../../world/log/garbage.ts"
import { describeWithServer } from "../../world/programs/nats.ts"
import { hashed, putBlob } from "../../world/server/blob-client.ts"
import { connect, responseText } from "../../world/server/client.ts"
import {
  cleanUp,
  newFolder,
  runVerb,
  type Server,
  startServer,
  until,
} from "../../world/server/server.ts"

const test_ms_max = 240_000
const soon_ms = 30_000

const environment = {
  ALMANAC_SERVICES: "blob-storage,share-protection",
  ALMANAC_AUDIT__CHECKPOINT_COMMITS: "5",
  ALMANAC_AUDIT__CHECKPOINT_SECONDS: "1",
}

const verb = (folder: string, ...args: ReadonlyArray<string>) => runVerb(folder, args, environment)

interface Events {
  readonly events: ReadonlyArray<{
    readonly position: number
    readonly aggregate: string
    readonly id: string
    readonly service: string
    readonly subject: string
    readonly type: string
  }>
}

/** Puts a blob, and checks its event in the audit log and among the published events. */
const stored = async (server: Server, text: string, token = server.credentials.blob.token) => {
  const client = connect(server.url, token)
  const operator = connect(server.url, server.credentials.admin.token)
  const bytes = Buffer.from(text)
  const answer = await putBlob(client, bytes, "raw")
  assert.equal(answer.status, 200, responseText(answer))
  const { id } = hashed(bytes)
  await until("the blob's event in the audit", soon_ms, async () => {
    const { events } = await operator.json<Events>("GET", "/v1/admin/audit?type=BlobStored")
    return events.some(({ subject }) => subject === id)
  })
  client.close()
  operator.close()
  return id
}

/** Creates a webhook: a command to a separate aggregate, and a row. */
const webhookMade = (server: Server) => {
  const operator = connect(server.url, server.credentials.admin.token)
  const body = JSON.stringify({ url: "https://8.8.8.8/none", types: ["blob_stored"] })
  return operator
    .ask("POST", "/v1/admin/webhooks", { headers: { "content-type": "application/json" }, body })
    .finally(operator.close)
}

/** Waits until the blob's event is published. */
const published = async (server: Server, id: string) => {
  const controller = new AbortController()
  const answer = await fetch(`${server.url}/v1/events?type=blob_stored`, {
    headers: {
      authorization: `Bearer ${server.credentials.admin.token}`,
      "last-event-id": "0",
    },
    signal: controller.signal,
  })
  let text = ""
  const reader = answer.body?.getReader()
  await until(`blob_stored of ${id}`, soon_ms, async () => {
    const piece = await reader?.read()
    text += Buffer.from(piece?.value ?? []).toString()
    return text.includes(id)
  })
  controller.abort()
}

interface Fault {
  readonly kind: string
  readonly position: number
}

const folder = newFolder()
let server: Server
let token = ""
let positions: ReadonlyArray<number> = []
let used: ReadonlyArray<string> = []

afterAll(cleanUp)

describeWithServer("a log with messages that no release wrote", () => {
  beforeAll(async () => {
    server = await startServer(folder, environment)
    await stored(server, "before")
    const issued = await verb(
      folder,
      "token",
      "issue",
      "--scope",
      "blobs:read",
      "--scope",
      "blobs:write",
    )
    assert.equal(issued.code, 0, issued.stderr)
    token = issued.stdout.trim()
    const operator = connect(server.url, server.credentials.admin.token)
    const streams = await until("a checkpoint", soon_ms, async () => {
      const { events } = await operator.json<Events>("GET", "/v1/admin/audit?limit=1000")
      const all = new Set(events.map((one) => `${one.service}.${one.aggregate}.${one.id}`))
      return [...all].some((one) => one.startsWith("system.checkpoint")) && [...all]
    })
    operator.close()
    used = streams.filter((one) => !one.startsWith("share-protection.scheduler"))
    positions = await publishInto(folder, garbage(used))
    await stored(server, "while it runs", token)
    await server.stop()
    server = await startServer(folder, environment)
  }, test_ms_max)

  it(
    "is served: puts, commands and reads continue, and events are published",
    async () => {
      const id = await stored(server, "after", token)
      await published(server, id)
      const ready = await fetch(`${server.url}/readyz`)
      expect([ready.status, await ready.text()]).toEqual([
        200,
        expect.stringContaining(
          `operations ok; ${positions.length} commits of the log cannot be read and are skipped`,
        ),
      ])
      const made = await webhookMade(server)
      expect([made.status, responseText(made)]).toEqual([201, expect.anything()])
      const issued = await verb(folder, "token", "issue", "--scope", "blobs:read")
      expect(issued.code).toBe(0)
      const operator = connect(server.url, server.credentials.admin.token)
      await until("read models to show it all", soon_ms, async () => {
        const { read_models } = await operator.json<{
          readonly read_models: ReadonlyArray<{ readonly behind: number }>
        }>("GET", "/v1/admin/read-models")
        return read_models.every(({ behind }) => behind === 0)
      })
      operator.close()
    },
    test_ms_max,
  )

  it(
    "is verified: each is a fault of its own kind, without other faults",
    async () => {
      const { code, stdout, stderr } = await verb(
        folder,
        "audit",
        "verify",
        "--json",
        "--faults",
        "1000",
      )
      expect([code, stderr.includes("could not be verified")]).toEqual([1, false])
      const { faults } = JSON.parse(stdout) as { readonly faults: ReadonlyArray<Fault> }
      expect(faults.map(({ kind }) => kind)).toEqual(positions.map(() => "unreadable"))
      expect(faults.map(({ position }) => position)).toEqual(positions)
    },
    test_ms_max,
  )

  it(
    "is checked by every command",
    async () => {
      const [cluster = ""] = used.filter((one) => one.startsWith("blob-storage.cluster"))
      const requests = [
        ["audit", "replay"],
        ["audit", "list"],
        ["audit", "state", cluster],
        ["audit", "diff"],
        ["rebuild", "system"],
      ]
      for (const args of requests) {
        const { code, stderr } = await verb(folder, ...args)
        expect([args, code, stderr]).toEqual([args, 0, expect.anything()])
      }
      const { stdout, stderr } = await verb(folder, "doctor")
      expect(stderr).not.toContain("    at ")
      expect(stdout).toMatch(/^ok +read model/m)
      const { stream, kind } = garbage(used)[0] ?? { stream: "", kind: "" }
      expect(stdout).toMatch(
        new RegExp(`^warn +quarantine +${positions[0]} ${stream}: it is ${kind}`, "m"),
      )
      const listed = await verb(folder, "log", "quarantine", "--limit", "2", "--json")
      const found = JSON.parse(listed.stdout)
      expect([found.count, found.first.length]).toEqual([positions.length, 2])
    },
    test_ms_max,
  )

  it(
    "is measured, until an operator acknowledges the existing loss",
    async () => {
      const operator = connect(server.url, server.credentials.admin.token)
      const counted = async () =>
        (await operator.ask("GET", "/metrics")).body
          .toString()
          .split("\n")
          .filter((line) => line.startsWith("almanac_log_unreadable_commits"))
          .map((line) => line.slice(line.indexOf("{")))
      const shows = (open: number, acknowledged: number) =>
        until("metrics of it", soon_ms, async () => {
          const lines = await counted()
          const wanted = [`{acknowledged="false"} ${open}`, `{acknowledged="true"} ${acknowledged}`]
          return lines.join() === wanted.join()
        })
      await shows(positions.length, 0)
      const done = await verb(folder, "log", "acknowledge", "--reason", "a script of ours")
      expect([done.code, done.stdout]).toEqual([
        0,
        expect.stringContaining(`acknowledged ${positions.length} unreadable commits`),
      ])
      await shows(0, positions.length)
      const ready = await fetch(`${server.url}/readyz`)
      expect(await ready.text()).toMatch(/^operations ok$/m)
      const verified = await verb(folder, "audit", "verify")
      expect([verified.code, verified.stdout]).toEqual([
        0,
        expect.stringContaining(`intact, ${positions.length} unreadable and acknowledged`),
      ])
      const again = await verb(folder, "log", "acknowledge", "--reason", "a script of ours")
      expect([again.code, again.stderr]).toEqual([
        1,
        expect.stringContaining("nothing was changed"),
      ])
      const [later = 0] = await publishInto(folder, garbage([]).slice(0, 1))
      await shows(1, positions.length)
      const { stdout } = await verb(folder, "doctor")
      expect(stdout).toMatch(new RegExp(`^warn +quarantine +${later} `, "m"))
      positions = [...positions, later]
      operator.close()
    },
    test_ms_max,
  )

  it(
    "is backed up as it is, and the backup is whole",
    async () => {
      const to = join(newFolder(), "backup")
      const backup = await verb(folder, "backup-state", "--to", to)
      expect([backup.code, backup.stderr]).toEqual([0, expect.anything()])
      const check = await verb(folder, "restore-state", "--from", to, "--check")
      expect([check.code, check.stdout]).toEqual([
        0,
        expect.stringContaining(`${positions.length} unreadable commits`),
      ])
    },
    test_ms_max,
  )

  it(
    "is restored and rolled with all of it, and both go on",
    async () => {
      const to = join(newFolder(), "backup")
      const backup = await verb(folder, "backup-state", "--to", to)
      assert.equal(backup.code, 0, backup.stderr)
      await server.stop()
      const restored = join(newFolder(), "restored")
      const restore = await verb(restored, "restore-state", "--from", to)
      assert.equal(restore.code, 0, restore.stderr)
      for (const data_dir of [restored, folder]) {
        const roll = await verb(data_dir, "log", "roll")
        assert.equal(roll.code, 0, roll.stderr)
        const listed = await verb(data_dir, "log", "quarantine", "--json")
        const { count, open } = JSON.parse(listed.stdout)
        expect([count, open]).toEqual([positions.length, 1])
        server = await startServer(data_dir, environment)
        await stored(server, `after all, in ${data_dir}`)
        const verified = await verb(data_dir, "audit", "verify", "--json")
        const { faults } = JSON.parse(verified.stdout) as { readonly faults: ReadonlyArray<Fault> }
        expect(faults.map(({ kind, position }) => [kind, position])).toEqual([
          ["unreadable", positions.at(-1)],
        ])
        await server.stop()
      }
    },
    test_ms_max,
  )
})
