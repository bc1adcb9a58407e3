/**
 * Subscribers that resume, against a whole server. The table has a row for each subscriber and a
 * column for each event; `while away` and `while there` in a test's title state whether the
 * subscribers are connected at that moment:
 *
 *                                    restore-state   stream lost    retention   accept-loss
 *   server-sent events, two types         1, 2           3, 4          5, 6          7, 8
 *   server-sent events, by scope          1, 2           3, 4          5, 6          7, 8
 *   webhook with two types                1, 2           3, 4          5, 6          7, 8
 *   durable consumer on the bus           1, 2           3, 4          5, 6          7, 8
 *
 * Odd: disconnected; even: connected. In each case, a subscriber ends with exactly the currently
 * published events: each event once, in order, and a `state_restored` for revoked events.
 */
import assert from "node:assert/strict"
import { readFileSync, rmSync, statSync, truncateSync } from "node:fs"
import { join } from "node:path"
import { jetstreamManager } from "@nats-io/jetstream"
import { connect as connectBus } from "@nats-io/transport-node"
import { afterAll, expect, it } from "vitest"
import type { CloudEvent } from "#schemas/cloud-event.ts"
import { blocksOf } from "../../log/guarded.ts"
import { describeWithServer } from "../../world/programs/nats.ts"
import { putBlob } from "../../world/server/blob-client.ts"
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
  byDurable,
  byStream,
  byWebhook,
  isRestoration,
  type Subscriber,
  standing,
} from "./event-subscribers.ts"

const settings = {
  ALMANAC_SERVICES: '["blob-storage"]',
  ALMANAC_COMPUTE__KIND: "none",
  ALMANAC_WEBHOOKS__ALLOW_HTTP: "true",
  ALMANAC_WEBHOOKS__ALLOWED_NETWORKS: "127.0.0.0/8",
}
const wait_ms = 90_000
const test_ms = 300_000
/** Truncates the last commit of a block. */
const torn_bytes = 30

const types = ["token_issued", "token_revoked"]
const isOfTypes = (event: CloudEvent) => isRestoration(event) || types.includes(event.type)
const isOfBlobs = (event: CloudEvent) =>
  isRestoration(event) || event.source.startsWith("/almanac/blob-storage/")

const verb = async (folder: string, ...args: ReadonlyArray<string>) => {
  const { code, stdout, stderr } = await runVerb(folder, args, settings)
  assert.equal(code, 0, `${args.join(" ")}: ${stdout}${stderr}`)
  return stdout
}

let serial = 0

/** Issues two tokens, revokes one, and puts a blob; returns once all events are published. */
const work = async (server: Server, times = 1) => {
  const operator = connect(server.url, server.credentials.admin.token)
  const blobs = connect(server.url, server.credentials.blob.token)
  let id = ""
  for (let n = 0; n < times; n++) {
    serial++
    for (const name of [`kept-${serial}`, `gone-${serial}`]) {
      await operator.json("POST", "/v1/admin/tokens", { name, scopes: ["blobs:read"], roles: [] })
    }
    await operator.json("POST", `/v1/admin/tokens/gone-${serial}/revoke`, {})
    const put = await putBlob(blobs, Buffer.from(`blob ${serial}`), "raw")
    assert.equal(put.status, 200)
    id = JSON.parse(put.body.toString()).id.id
  }
  operator.close()
  blobs.close()
  return Buffer.from(id, "base64").toString("hex")
}

/** All currently published events, oldest first, up to the last blob's. */
const published = async (server: Server) => {
  const last = await work(server)
  const all = byStream(
    "all",
    ({ credentials }) => credentials.admin.token,
    "",
    () => true,
  )
  await all.attach(server)
  const isLast = ({ type, subject }: CloudEvent) => type === "blob_stored" && subject === last
  await until("the last event", wait_ms, () => all.received().some(isLast))
  await all.detach()
  return all.received()
}

/** Accesses the stream of published events with the publisher's credentials. */
const withStream = async (
  { data_dir }: Server,
  act: (jsm: Awaited<ReturnType<typeof jetstreamManager>>) => Promise<unknown>,
) => {
  const { nats, events } = JSON.parse(readFileSync(join(data_dir, "run", "instance.json"), "utf8"))
  const { user, password: pass } = events
  const connection = await connectBus({ servers: nats.url, user, pass })
  await act(await jetstreamManager(connection))
  await connection.close()
}

interface Event {
  readonly name: string
  /** Whether it revokes events that subscribers received. */
  readonly takes_back: boolean
  /** Causes the event between two work phases; returns the server that runs afterwards. */
  readonly happens: (server: Server, backup: string) => Promise<Server>
}

const events: ReadonlyArray<Event> = [
  {
    name: "restore-state",
    takes_back: true,
    happens: async (server, backup) => {
      const { data_dir } = server
      await server.stop()
      rmSync(data_dir, { recursive: true })
      await verb(data_dir, "restore-state", "--from", backup)
      return await startServer(data_dir, settings)
    },
  },
  {
    name: "the loss of the stream of published events",
    takes_back: false,
    happens: async (server) => {
      await withStream(server, (jsm) => jsm.streams.delete("ALMANAC_EVENTS"))
      return server
    },
  },
  {
    name: "retention",
    takes_back: false,
    happens: async (server) => {
      // Smaller than events.retention_bytes permits, so that a few hundred events are enough.
      const max_bytes = 20_000
      await withStream(server, (jsm) => jsm.streams.update("ALMANAC_EVENTS", { max_bytes }))
      await work(server, 20)
      await withStream(server, async (jsm) => {
        const { state } = await jsm.streams.info("ALMANAC_EVENTS")
        assert.ok(state.first_seq > 20, "events are discarded")
      })
      return server
    },
  },
  {
    name: "an accepted loss",
    takes_back: true,
    happens: async (server) => {
      const { data_dir } = server
      await server.killAll()
      const block = blocksOf(data_dir).at(-1) ?? ""
      truncateSync(block, statSync(block).size - torn_bytes)
      assert.match(await verb(data_dir, "log", "accept-loss", "--reason", "a test"), /recorded as/)
      return await startServer(data_dir, settings)
    },
  },
]

/** The events that a subscriber should hold, and those it holds. */
const compared = (
  { received, wanted, is_webhook }: Subscriber,
  truth: ReadonlyArray<CloudEvent>,
) => {
  const ought = truth.filter(wanted).map(({ id }) => id)
  const does = standing(received().filter(wanted))
  // Webhooks deliver at least once, and in order only per subject.
  if (!is_webhook) return { ought, does }
  return { ought: ought.toSorted(), does: [...new Set(does)].toSorted() }
}

describeWithServer("subscribers that resume", () => {
  afterAll(cleanUp)

  for (const { name, takes_back, happens } of events) {
    for (const is_away of [true, false]) {
      it(`are received each event once over ${name}, ${is_away ? "while away" : "while there"}`, {
        timeout: test_ms,
      }, async () => {
        let server = await startServer(newFolder(), settings)
        const hook = await byWebhook("webhook with two types", isOfTypes)
        const all = [
          byStream(
            "server-sent events, two types",
            ({ credentials }) => credentials.admin.token,
            types.map((type) => `type=${type}`).join("&"),
            isOfTypes,
          ),
          byStream(
            "server-sent events, by scope",
            ({ credentials }) => credentials.blob_read.token,
            "",
            isOfBlobs,
          ),
          hook,
          byDurable("durable consumer on the bus", "durable"),
        ]
        const operator = connect(server.url, server.credentials.admin.token)
        const request = { url: hook.url, types, after: 0 }
        const made = await operator.ask("POST", "/v1/webhooks", {
          headers: { "content-type": "application/json" },
          body: JSON.stringify(request),
        })
        assert.ok(made.status < 300, made.body.toString())
        operator.close()
        await work(server, 5)
        const backup = join(newFolder(), "state")
        await verb(server.data_dir, "backup-state", "--to", backup)
        for (const one of all) await one.attach(server)
        // Subscribers receive the events before a restore revokes them.
        const before = await published(server)
        const areAt = (truth: ReadonlyArray<CloudEvent>) => () =>
          all.every((one) => {
            const { ought, does } = compared(one, truth)
            return ought.length <= does.length
          })
        await until("the subscribers", wait_ms, areAt(before))
        const leaves = async () => {
          for (const one of all) await one.detach()
        }
        if (is_away) await leaves()
        const started = server
        server = await happens(server, backup)
        if (server !== started && !is_away) await leaves()
        await work(server, 5)
        if (server !== started || is_away) for (const one of all) await one.attach(server)
        const truth = await published(server)
        await until("the subscribers again", wait_ms, areAt(truth)).catch(() => undefined)
        for (const one of all) {
          const { ought, does } = compared(one, truth)
          expect({ name: one.name, ids: does }).toEqual({ name: one.name, ids: ought })
        }
        const count = takes_back ? 1 : 0
        for (const { name, received } of all) {
          expect({ name, restored: received().filter(isRestoration).length }).toEqual({
            name,
            restored: count,
          })
        }
        // Without this check, the test might not revoke any events.
        const still = new Set(truth.map(({ id }) => id))
        const gone = all.flatMap(({ received }) => received().filter(({ id }) => !still.has(id)))
        expect(gone.length > 0).toBe(takes_back)
        await leaves()
        hook.close()
        await server.stop()
      })
    }
  }
})
