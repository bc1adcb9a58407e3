/**
 * State with an external bus (`nats.url`): either the bus is lost, or only the machine's folder.
 */
import assert from "node:assert/strict"
import { chmodSync, rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { afterAll, expect, it } from "vitest"
import { describeWithServer } from "../../world/programs/nats.ts"
import { hashed, putBlob } from "../../world/server/blob-client.ts"
import { connect } from "../../world/server/client.ts"
import { startNats } from "../../world/server/outside-nats.ts"
import {
  cleanUp,
  newFolder,
  runVerb,
  type Server,
  startServer,
  until,
} from "../../world/server/server.ts"

const test_ms_max = 300_000
const soon_ms = 60_000

afterAll(cleanUp)

const on = (url: string) => ({ ALMANAC_SERVICES: "blob-storage", ALMANAC_NATS__URL: url })

const verb = async (folder: string, url: string, ...args: ReadonlyArray<string>) => {
  const { code, stdout, stderr } = await runVerb(folder, args, on(url))
  assert.equal(code, 0, `${args.join(" ")}: ${stdout}${stderr}`)
  return stdout
}

/** Puts a blob and waits for its audit event. */
const stored = async (server: Server, text: string) => {
  const { admin, blob } = server.credentials
  const [client, operator] = [connect(server.url, blob.token), connect(server.url, admin.token)]
  const bytes = Buffer.from(text)
  expect((await putBlob(client, bytes, "raw")).status).toBe(200)
  const { id } = hashed(bytes)
  await until("the blob's event", soon_ms, async () => {
    const { events } = await operator.json<{ events: ReadonlyArray<{ subject: string }> }>(
      "GET",
      "/v1/admin/audit?type=BlobStored",
    )
    return events.some(({ subject }) => subject === id)
  })
  for (const one of [client, operator]) one.close()
}

/** The result of `doctor` locally, and for the same server over HTTP. */
const looked = async (server: Server, url: string) => {
  const { data_dir, credentials } = server
  const well = await runVerb(data_dir, ["doctor", "--json"], on(url))
  assert.equal(well.code, 0, well.stdout + well.stderr)
  const all: ReadonlyArray<{ readonly what: string; readonly status: string }> = JSON.parse(
    well.stdout,
  )
  for (const what of ["nats", "log", "leases", "ready", "read model", "backup"]) {
    assert.ok(
      all.some((one) => one.what === what),
      what,
    )
  }
  chmodSync(join(data_dir, "cursor-key"), 0o644)
  const ill = await runVerb(data_dir, ["doctor"], on(url))
  assert.equal(ill.code, 1)
  assert.match(ill.stdout, /^fail +secrets +other users can read cursor-key/m)
  const token = { ALMANAC_TOKEN: credentials.admin.token }
  const remote = await runVerb(newFolder(), ["doctor", "--url", server.url], token)
  assert.equal(remote.code, 0, remote.stdout + remote.stderr)
  assert.match(remote.stdout, /^ok +log size +generation 1, position/m)
}

describeWithServer("a server with a bus of its own", () => {
  it(
    "is restored where the bus is lost, and where its folder is",
    async () => {
      const [folder, store, elsewhere] = [newFolder(), newFolder(), newFolder()]
      const phrase = join(elsewhere, "phrase")
      writeFileSync(phrase, "correct horse battery staple\n", { mode: 0o600 })
      const sealed = ["--passphrase-file", phrase]
      const to = join(elsewhere, "state")
      const bus = await startNats(store)
      const first = await startServer(folder, on(bus.url))
      const { token } = first.credentials.admin
      await stored(first, "one")
      const result = await verb(folder, bus.url, "backup-state", "--to", to, ...sealed)
      await looked(first, bus.url)
      const last = /position (\d+)/.exec(result)?.[1] ?? ""
      const before = await verb(folder, bus.url, "audit", "replay", "--last", last)
      await first.killAll()

      // Only the machine is lost: the bus keeps its log, and other clients write to it meanwhile.
      rmSync(folder, { recursive: true })
      const restore = ["restore-state", "--from", to]
      const closed = await runVerb(folder, restore, on(bus.url))
      assert.equal(closed.code, 1)
      assert.match(closed.stderr, /is encrypted/)
      const refused = await runVerb(folder, [...restore, ...sealed], on(bus.url))
      assert.equal(refused.code, 1)
      assert.match(refused.stderr, /already has a log/)
      await verb(folder, bus.url, ...restore, ...sealed, "--files-only")
      const second = await startServer(folder, on(bus.url))
      assert.equal(second.credentials.admin.token, token)
      await stored(second, "two")
      assert.equal((await second.stop()).code, 0)

      // The bus and the machine are lost.
      await bus.stop()
      rmSync(folder, { recursive: true })
      const other = await startNats(newFolder())
      await verb(folder, other.url, ...restore, ...sealed)
      assert.equal(await verb(folder, other.url, "audit", "replay", "--last", last), before)
      const third = await startServer(folder, on(other.url))
      await stored(third, "three")
      await third.stop()
      assert.match(await verb(folder, other.url, "audit", "verify"), /^intact: /)
      await other.stop()
    },
    test_ms_max,
  )
})
