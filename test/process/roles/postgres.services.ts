/**
 * Processes that share their read models in PostgreSQL, while the writer is killed or paused, or
 * the database server crashes. Acknowledged writes appear exactly once, and reads return 503 while
 * they are unavailable.
 */
import assert from "node:assert/strict"
import { randomUUID } from "node:crypto"
import { Context, Effect, Exit, Layer, Scope } from "effect"
import { afterAll, beforeAll, expect, it } from "vitest"
import { blueprint } from "#projections/share-protection/blueprint.ts"
import {
  ask,
  describePostgres,
  Postgres,
  type TestPostgres,
} from "../../world/programs/postgres.ts"
import { type Client, connect, responseText } from "../../world/server/client.ts"
import { type Deployment, newDeployment } from "../../world/server/deployment.ts"
import { startNats } from "../../world/server/outside-nats.ts"
import { cleanUp, newFolder, type Server, until } from "../../world/server/server.ts"

const minutes_ms = 300_000

/** The schema of the read model; it changes with each version. */
const schema = `almanac_share_protection_v${blueprint.version}`

/**
 * A paused writer is disconnected after ten seconds, and another one takes over within one more.
 */
const turn_ms_max = 60_000

describePostgres("a deployment with read models in PostgreSQL", () => {
  const scope = Effect.runSync(Scope.make())
  let nats: Awaited<ReturnType<typeof startNats>>
  let postgres: TestPostgres
  let url: string
  let deployment: Deployment
  let gateway: Server
  const writers = new Map<string, Server>()
  let client: Client
  /** Every acknowledged target. */
  const made: Array<string> = []

  beforeAll(async () => {
    nats = await startNats(newFolder())
    const built = await Effect.runPromise(Layer.buildWithScope(Postgres.layer, scope))
    postgres = Context.get(built, Postgres)
    url = await Effect.runPromise(postgres.database)
    const environment = {
      ALMANAC_SERVICES: "share-protection",
      ALMANAC_QUOTA__TARGETS: "100000",
      ALMANAC_DATABASE__CONNECTION: url,
    }
    deployment = newDeployment({ url: nats.url, environment })
    // Started in sequence, so the first one becomes the writer.
    await startWriter("p1")
    await startWriter("p2")
    gateway = await deployment.start("g1", { roles: ["gateway"] })
    client = connect(gateway.url, deployment.tokens.member)
  }, minutes_ms)
  afterAll(async () => {
    client?.close()
    for (const [, { signal }] of writers) signal("SIGCONT")
    await deployment?.stop()
    await cleanUp()
    await nats?.stop()
    await Effect.runPromise(Scope.close(scope, Exit.void))
  }, minutes_ms)

  const startWriter = async (name: string) => {
    const roles = ["actors", "conductor", "projections"] as const
    writers.set(name, await deployment.start(name, { roles }))
  }

  /** The process that currently writes the tables of share protection, by its process id. */
  const writing = async () => {
    const rows = await Effect.runPromise(
      ask(
        url,
        `select split_part(application_name, '@', 2) as pid
          from pg_locks join pg_stat_activity using (pid)
          where locktype = 'advisory' and granted and mode = 'ExclusiveLock'
            and application_name like 'almanac_share_protection%'`,
      ),
    )
    return [...writers].find(([, { pid }]) => String(pid) === rows[0]?.pid)
  }
  const writer = async () => {
    const [name, server] = await until("somebody's turn", turn_ms_max, writing)
    return { name, server }
  }

  const post = async () => {
    const answer = await client.ask("POST", "/v1/targets", {
      headers: { "content-type": "application/json", "idempotency-key": randomUUID() },
      body: JSON.stringify({ name: "t", endpoint: "https://s3.example.org", bucket: "bucket" }),
    })
    assert(answer.status < 300, responseText(answer))
    const id: string = JSON.parse(answer.body.toString()).target.id
    made.push(id)
    return { id, position: String(answer.headers["x-almanac-position"]) }
  }
  const read = ({ id, position }: { readonly id: string; readonly position: string }) =>
    client.ask("GET", `/v1/targets/${id}`, { headers: { "x-almanac-position": position } })
  /** A read returns 503 until the write is visible and 200 from then on, and nothing else. */
  const readAtLast = (one: Awaited<ReturnType<typeof post>>) =>
    until("it shows", turn_ms_max, async () => {
      const answer = await read(one)
      assert([200, 503].includes(answer.status), responseText(answer))
      return answer.status === 200
    })

  const agree = async () => {
    const admin = connect(gateway.url, deployment.tokens.admin)
    const path = "/v1/admin/read-models/share-protection/difference"
    const found = await admin.json<{ readonly count: number }>("POST", path)
    admin.close()
    assert.equal(found.count, 0)
    const rows = await Effect.runPromise(
      ask(url, `select id from ${schema}.share_protection_target`),
    )
    // Unacknowledged targets may exist too.
    const there = new Set(rows.map(({ id }) => String(id)))
    expect(made.filter((id) => !there.has(id))).toEqual([])
  }

  it("shows through a gateway that never writes what was written", async () => {
    for (let n = 0; n < 20; n++) expect((await read(await post())).status).toBe(200)
    expect((await writer()).name).toBe("p1")
  })

  it(
    "goes on where a writer was killed",
    async () => {
      const { name, server } = await writer()
      for (let n = 0; n < 5; n++) await post()
      await server.killAlone()
      writers.delete(name)
      await readAtLast(await post())
      assert.notEqual((await writer()).name, name)
      await startWriter(name)
    },
    minutes_ms,
  )

  it(
    "takes the turn of a writer that was stopped, which writes nothing when it comes back",
    async () => {
      const { name, server } = await writer()
      server.signal("SIGSTOP")
      // The other process has the actors too, so it handles commands that the paused one does not.
      // The bus chooses one of them for each request; a request to the paused one waits 12 s.
      const one = await until("an answer", 4 * turn_ms_max, () => post().catch(() => undefined))
      await readAtLast(one)
      assert.notEqual((await writer()).name, name)
      server.signal("SIGCONT")
      for (let n = 0; n < 5; n++) await readAtLast(await post())
      assert.notEqual((await writer()).name, name)
    },
    minutes_ms,
  )

  it(
    "returns 503 while the server is offline, and resumes afterwards",
    async () => {
      await Effect.runPromise(postgres.kill)
      const ready = () => fetch(new URL("/readyz", gateway.url))
      // A writer that has just recovered may lag for a moment, but that has a different message.
      const why = "cannot reach its read model's database"
      await until("not ready", turn_ms_max, async () =>
        (await (await ready()).text()).includes(why),
      )
      expect((await ready()).status).toBe(503)
      const answer = await client.ask("GET", "/v1/targets")
      expect(answer.status).toBe(503)
      expect(JSON.parse(answer.body.toString()).code).toBe("svc.backend_unavailable")
      expect(answer.body.toString()).not.toContain("postgres@")
      await Effect.runPromise(postgres.start)
      await until("ready", turn_ms_max, async () => (await ready()).status === 200)
      await readAtLast(await post())
    },
    minutes_ms,
  )

  it(
    "is prepared for another version by migrate, while processes run",
    async () => {
      const { code, stderr } = await deployment.verb("m1", ["migrate"])
      assert.equal(code, 0, stderr)
      await readAtLast(await post())
    },
    minutes_ms,
  )

  it("holds each target once, as a rebuild says too", agree, minutes_ms)
})
