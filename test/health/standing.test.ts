/**
 * A server with stalled parts: `/readyz`, metrics and `almanac doctor` report them within seconds,
 * and doctor uses the server's settings, not its own. Source: DECISIONS, "health".
 */
import assert from "node:assert/strict"
import { readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { DatabaseSync } from "node:sqlite"
import { jetstreamManager } from "@nats-io/jetstream"
import { connect as connectNats } from "@nats-io/transport-node"
import { afterAll, beforeAll, it } from "vitest"
import { samplesOf } from "#adapters/health/metric-samples.ts"
import { events_stream } from "#adapters/published/stream-name.ts"
import { describeWithServer } from "../world/programs/nats.ts"
import { connect } from "../world/server/client.ts"
import {
  cleanUp,
  newFolder,
  runVerb,
  type Server,
  startServer,
  until,
} from "../world/server/server.ts"

/** A part counts as stalled once it is 10 s behind. */
const standing_ms_max = 60_000
const test_ms_max = 120_000

const readyOf = async ({ url }: Server) => {
  const answer = await fetch(new URL("/readyz", url))
  return { status: answer.status, text: await answer.text() }
}

/** The output of `doctor`: the statuses and the reasons. */
const doctor = async (server: Server, args: ReadonlyArray<string> = [], environment = {}) => {
  const command = ["doctor", "--json", ...args]
  const { stdout, stderr, code } = await runVerb(server.data_dir, command, environment)
  const found: ReadonlyArray<{ status: string; what: string; why: string }> =
    stdout === "" ? [] : JSON.parse(stdout)
  const why = (what: string) => found.find((one) => one.what === what)?.why ?? ""
  const of = (what: string) => found.flatMap((one) => (one.what === what ? [one.status] : []))
  return { found, code, stderr, why, of }
}

/** Commits an event that is published. */
const issue = async (server: Server, name: string) => {
  const operator = connect(server.url, server.credentials.admin.token)
  const body = { name, scopes: ["blobs:read"], roles: [] }
  await operator.json("POST", "/v1/admin/tokens", body)
  operator.close()
}

/** Limits the size of published events, with the publisher's own credentials. */
const limitEvents = async ({ data_dir }: Server, max_msg_size: number) => {
  const { nats, events } = JSON.parse(readFileSync(join(data_dir, "run/instance.json"), "utf8"))
  const { user, password: pass } = events
  const connection = await connectNats({ servers: nats.url, user, pass })
  const jsm = await jetstreamManager(connection)
  await jsm.streams.update(events_stream, { max_msg_size })
  await connection.close()
}

/** Locks the audit's database so that nothing can be written to it. */
const lockAudit = ({ data_dir }: Server) => {
  const folder = join(data_dir, "read-models")
  const file = readdirSync(folder).find((name) => /^system[.@].*(db|sqlite)$/.test(name))
  assert(file !== undefined, readdirSync(folder).join())
  const database = new DatabaseSync(join(folder, file))
  database.exec("BEGIN IMMEDIATE")
  return database
}

const lagOf = async (server: Server) => {
  const operator = connect(server.url, server.credentials.admin.token)
  const { body } = await operator.ask("GET", "/metrics")
  operator.close()
  return samplesOf(body.toString(), "almanac_publisher_lag_seconds")[0]?.value ?? -1
}

describeWithServer("a server of which parts stand", () => {
  let server: Server
  beforeAll(async () => {
    server = await startServer(newFolder())
  }, test_ms_max)
  afterAll(cleanUp)

  it(
    "is judged by its own settings, each check alone",
    async () => {
      // The command's own settings are wrong for every check of doctor.
      const wrong = {
        ALMANAC_API__BIND_HOST: "0.0.0.0",
        ALMANAC_NATS__BINARY: "/nonexistent/nats-server",
        ALMANAC_DATABASE__CONNECTION: "postgresql://nobody@127.0.0.1:1/none",
      }
      const all = await doctor(server, [], wrong)
      assert.deepEqual([all.of("tls"), all.of("database")], [[], []], JSON.stringify(all.found))
      assert(!all.of("program").includes("fail"))
      assert.match(all.why("settings"), /differ in .*nats\.binary.*database\.connection/)
      for (const what of ["publisher", "subscribers", "events", "version", "log end", "nats"]) {
        const status = all.of(what)
        assert(status.length > 0 && status.every((one) => one === "ok"), `${what}: ${status}`)
      }
      const some = await doctor(server, ["--only", "publisher", "--only", "log-end"])
      assert.deepEqual(
        some.found.map(({ what }) => what),
        ["publisher", "log end"],
      )
      const none = await doctor(server, ["--only", "publishr"])
      assert.equal(none.code, 1)
      const names = /Unknown check publishr: use any of (.*)\./.exec(none.stderr)?.[1] ?? ""
      const page = readFileSync("docs/observability.md", "utf8").split("## almanac doctor")[1] ?? ""
      const rows = [...(page.split("\n## ")[0] ?? "").matchAll(/^\| `([a-z-]+)`/gm)].map(
        ([, name]) => name,
      )
      assert.deepEqual(names.split(", "), rows)
    },
    test_ms_max,
  )

  it(
    "is not ready, names the blocked part and the reason, and is ready again afterwards",
    async () => {
      assert.equal((await readyOf(server)).status, 200)
      await limitEvents(server, 10)
      const audit = lockAudit(server)
      await issue(server, "waits")
      const first = await until("the audit is stuck", standing_ms_max, async () => {
        const found = await readyOf(server)
        // The publisher has stalled too, and may be reported first.
        return found.status === 503 && found.text.includes("audit read model") && found.text
      })
      assert.match(
        first,
        /^operations the audit read model has stopped \d+ s behind the log at .*: .*locked/m,
      )
      assert.match(first, /^blob-storage ok/m, "blobs need no log")
      audit.exec("ROLLBACK")
      audit.close()
      const second = await until("the publisher is stuck", standing_ms_max, async () => {
        const found = await readyOf(server)
        return /publisher .*message size/.test(found.text) && found
      })
      assert.equal(second.status, 503)
      assert.match(
        second.text,
        /^operations the publisher has stopped \d+ s behind the log at .*: .*message size/m,
      )
      assert((await lagOf(server)) > 10)
      const { of, why, code } = await doctor(server, ["--only", "ready", "--only", "publisher"])
      assert(of("ready").includes("fail"))
      assert.match(why("publisher"), /the oldest unpublished commit is \d+ seconds old/)
      assert.equal(code, 1)
      await limitEvents(server, -1)
      await until("ready again", standing_ms_max, async () => {
        return (await readyOf(server)).status === 200 && (await lagOf(server)) === 0
      })
    },
    test_ms_max,
  )
})
