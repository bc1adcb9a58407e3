/** An operator's view of the process: how it starts, fails to start, keeps running and stops. */
import assert from "node:assert/strict"
import { execFile, execFileSync } from "node:child_process"
import { chmodSync, chownSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs"
import { get, request } from "node:http"
import { createServer } from "node:net"
import { join } from "node:path"
import { promisify } from "node:util"
import { afterAll, beforeAll, expect, it } from "vitest"
import { describeWithServer } from "../../world/programs/nats.ts"
import { getBlob, hashed, putBlob } from "../../world/server/blob-client.ts"
import { connect } from "../../world/server/client.ts"
import { startNats } from "../../world/server/outside-nats.ts"
import {
  childrenOf,
  cleanUp,
  end,
  isRunning,
  natsServersOn,
  newFolder,
  runVerb,
  type Server,
  startServer,
  until,
} from "../../world/server/server.ts"
import { each } from "../kill/check.ts"

/** DECISIONS, address: exit code 0 within 10 s. */
const stop_ms_max = 10_000
const soon_ms = 10_000
/** Concurrently started processes: the number of cores of a small machine. */
const spawned_max = 2

afterAll(cleanUp)

const linesOf = (text: string) => text.split("\n").filter((line) => line.trim() !== "")

const clientOf = ({ url, credentials }: Server) => connect(url, credentials.blob.token)

/** A single clear error line and a nonzero exit code. */
const refusal = async (data_dir: string, environment: Readonly<Record<string, string>>) => {
  const { code, stdout, stderr } = await runVerb(data_dir, ["serve"], environment)
  expect(code).not.toBe(0)
  expect(code).not.toBe(null)
  expect(stdout).toBe("")
  expect(linesOf(stderr)).toHaveLength(1)
  return linesOf(stderr)[0]
}

interface ClusterState {
  readonly ring_version: number
  readonly nodes: ReadonlyArray<{ readonly node_id: string; readonly state: string }>
}

const clusterState = (server: Server) => {
  const client = clientOf(server)
  return client.json<ClusterState>("GET", "/v1/cluster/state").finally(client.close)
}

/** An open event stream; `ended` resolves once the server has closed it. */
const openEvents = async ({ url, credentials }: Server) => {
  const headers = { authorization: `Bearer ${credentials.admin.token}` }
  const { promise, resolve, reject } = Promise.withResolvers<{ ended: Promise<void> }>()
  const sent = get(new URL("/v1/events", url), { headers, agent: false }, (response) => {
    const ended = new Promise<void>((done) => void response.on("close", done))
    response.once("data", () => resolve({ ended }))
    response.on("error", () => undefined)
  })
  sent.on("error", reject)
  return await promise
}

/** A put whose body has begun; `finish` sends the rest and returns the status. */
const openPut = async ({ url, credentials }: Server, size: number) => {
  const { promise: answered, resolve, reject } = Promise.withResolvers<number>()
  const sent = request(new URL("/v1/blobs/stream", url), {
    method: "POST",
    agent: false,
    headers: {
      authorization: `Bearer ${credentials.blob.token}`,
      "content-type": "application/octet-stream",
      "content-length": size,
    },
  })
  sent.on("response", (response) =>
    response.resume().on("end", () => resolve(response.statusCode ?? 0)),
  )
  sent.on("error", reject)
  answered.catch(() => undefined)
  await new Promise<void>((done) => sent.write(Buffer.alloc(size / 2), () => done()))
  const finish = () => {
    sent.end(Buffer.alloc(size / 2))
    return answered
  }
  return { finish }
}

const stopsWith = async (server: Server, signal: NodeJS.Signals, before_end = async () => {}) => {
  const children = childrenOf(server.pid)
  expect(children).not.toEqual([])
  const since = performance.now()
  server.signal(signal)
  await before_end()
  expect(await server.ended).toEqual({ code: 0, signal: null })
  expect(performance.now() - since).toBeLessThan(stop_ms_max)
  expect(children.filter(isRunning)).toEqual([])
  expect(natsServersOn(server.data_dir)).toEqual([])
  expect(readdirSync(join(server.data_dir, "run"))).not.toContain("instance.json")
}

describeWithServer("a server", () => {
  let server: Server
  beforeAll(async () => {
    server = await startServer(newFolder())
  })

  it("prints one ready line, then the addresses to open next and a curl that works", async () => {
    const credentials = join(server.data_dir, "dev-credentials.json")
    const last = await until("the last lines", soon_ms, () => {
      const lines = linesOf(server.printed.stderr)
      return lines.at(-1)?.startsWith("curl ") && lines
    })
    expect(server.printed.stdout).toBe(`almanac ready ${server.url}\n`)
    expect(last).toEqual([
      `Dashboard:     ${server.url}/`,
      `Console:       ${server.url}/console`,
      `API reference: ${server.url}/docs`,
      `Events:        ${server.url}/v1/events`,
      `Credentials:   ${credentials}`,
      expect.stringMatching(/^curl /),
    ])
    const command = `${last.at(-1)} --silent --show-error`
    const { stdout } = await promisify(execFile)("sh", ["-c", command])
    expect(JSON.parse(stdout)).toMatchObject({ ring_version: 1, nodes: [{ state: "active" }] })
  })

  it("asks everybody who they are", async () => {
    expect((await fetch(new URL("/v1/blobs", server.url))).status).toBe(401)
  })

  it("makes its files private to its user", async () => {
    const secrets = [
      "dev-credentials.json",
      "run/instance.json",
      "node-id",
      "cursor-key",
      "identity/tokens.json",
      "identity/trusts.json",
      "vault/key",
      "nats/nats.conf",
    ]
    const mode = (path: string) => statSync(join(server.data_dir, path)).mode & 0o777
    expect(secrets.map((path) => [path, mode(path)])).toEqual(secrets.map((path) => [path, 0o600]))
    const folders = readdirSync(server.data_dir, { withFileTypes: true })
      .filter((entry) => entry.isDirectory())
      .map(({ name }) => name)
    expect(folders.length).toBeGreaterThan(4)
    for (const folder of ["", ...folders]) expect([folder, mode(folder)]).toEqual([folder, 0o700])
  })

  it("puts no secret into an argument of a process", async () => {
    const { blob, admin, nats } = server.credentials
    const { control_token, nats: core } = JSON.parse(
      readFileSync(join(server.data_dir, "run", "instance.json"), "utf8"),
    )
    const list = execFileSync("ps", ["-A", "-ww", "-o", "args="], { encoding: "utf8" })
    for (const secret of [blob.token, admin.token, nats.password, control_token, core.password]) {
      expect(secret.length).toBeGreaterThan(20)
      expect(list).not.toContain(secret)
      expect(server.printed.stderr + server.printed.stdout).not.toContain(secret)
    }
  })

  it("keeps a second one off its data folder, by its own process id", async () => {
    expect(await refusal(server.data_dir, {})).toMatch(new RegExp(`\\b${server.pid}\\b`))
    expect((await clusterState(server)).nodes).toHaveLength(1)
  })

  it("starts its nats-server again where it was, and serves blobs all the while", async () => {
    const client = clientOf(server)
    const natsUrl = () =>
      JSON.parse(readFileSync(join(server.data_dir, "run", "instance.json"), "utf8")).nats.url
    const before = natsUrl()
    let puts = 0
    for (let times = 0; times < 3; times++) {
      const [pid = 0] = natsServersOn(server.data_dir)
      end(pid)
      await until("another nats-server", soon_ms, async () => {
        const bytes = Buffer.from(`while it is away ${puts++}`)
        expect((await putBlob(client, bytes, "json")).status).toBe(200)
        expect(await getBlob(client, hashed(bytes).id, "json")).toEqual(bytes)
        return natsServersOn(server.data_dir).some((other) => other !== pid)
      })
    }
    const body = JSON.stringify({ node_id: "n1", address: "10.0.0.1:1", capacity_bytes: 1 })
    const headers = { "content-type": "application/json", "idempotency-key": "join-n1" }
    await until("the join", soon_ms, async () => {
      const answer = await client.ask("POST", "/v1/cluster/join", { headers, body })
      if (answer.status === 200) return true
      expect(answer.status).toBe(503)
      expect(JSON.parse(answer.body.toString()).message).toBe("cluster degraded")
      return false
    })
    expect(natsUrl()).toBe(before)
    const [{ url }] = [server.credentials.nats]
    expect(url).toBe(before)
    expect((await clusterState(server)).nodes).toHaveLength(2)
    expect(puts).toBeGreaterThan(3)
    client.close()
  })

  it("stops after the requests in flight, ends streams, leaves no process", async () => {
    const events = await openEvents(server)
    const put = await openPut(server, 200_000)
    await stopsWith(server, "SIGTERM", async () => {
      await events.ended
      expect(await put.finish()).toBe(200)
    })
  })
})

describeWithServer("a start", () => {
  it("keeps who it is and what it holds", async () => {
    const data_dir = newFolder()
    const first = await startServer(data_dir)
    const bytes = Buffer.from("kept over a restart")
    const client = clientOf(first)
    expect((await putBlob(client, bytes, "json")).status).toBe(200)
    client.close()
    const before = await clusterState(first)
    await first.stop()

    const second = await startServer(data_dir)
    expect({ ...second.credentials, nats: {} }).toEqual({ ...first.credentials, nats: {} })
    const after = await clusterState(second)
    expect(after.nodes.map(({ node_id }) => node_id)).toEqual(
      before.nodes.map(({ node_id }) => node_id),
    )
    expect(after.ring_version).toBe(before.ring_version)
    const again = clientOf(second)
    expect(await getBlob(again, hashed(bytes).id, "raw")).toEqual(bytes)
    again.close()
    await second.stop()
  })

  it("works with a nats-server that somebody else runs, and leaves it running", async () => {
    const nats = await startNats(newFolder())
    try {
      const server = await startServer(newFolder(), { ALMANAC_NATS__URL: nats.url })
      expect(natsServersOn(server.data_dir)).toEqual([])
      const client = clientOf(server)
      expect((await putBlob(client, Buffer.from("outside"), "raw")).status).toBe(200)
      client.close()
      expect((await clusterState(server)).nodes).toMatchObject([{ state: "active" }])
      expect(await server.stop()).toEqual({ code: 0, signal: null })
      expect(isRunning(nats.pid)).toBe(true)
    } finally {
      await nats.stop()
    }
  })
})

describeWithServer("an invalid start", () => {
  it("says which address is taken", async () => {
    const taken = createServer()
    await new Promise<void>((done) => taken.listen(0, "127.0.0.1", done))
    const address = taken.address()
    const port = typeof address === "object" ? String(address?.port) : ""
    try {
      expect(await refusal(newFolder(), { ALMANAC_API__BIND_PORT: port })).toContain(port)
    } finally {
      taken.close()
    }
  })

  it("says which setting is wrong, and starts nothing", async () => {
    const data_dir = newFolder()
    const line = await refusal(data_dir, { ALMANAC_API__BIND_PORT: "seventy" })
    expect(line).toContain("api.bind_port")
    expect(line).toContain("ALMANAC_API__BIND_PORT")
    expect(await refusal(data_dir, { ALMANAC_API__BIND_PROT: "1" })).toContain("BIND_PROT")
    expect(await refusal(data_dir, { ALMANAC_NATS__REPLICAS: "9" })).toContain("nats.replicas")
    expect(readdirSync(data_dir)).toEqual([])
  })

  it("names the data folder that it cannot write", async () => {
    const file = join(newFolder(), "file")
    writeFileSync(file, "")
    chmodSync(file, 0o400)
    expect(await refusal(file, {})).toContain(`The data folder ${file} cannot be used`)
  })

  it.skipIf(process.getuid?.() !== 0)("makes nothing in a folder of another user's", async () => {
    const data_dir = newFolder()
    chownSync(data_dir, 4711, 4711)
    expect(await refusal(data_dir, {})).toContain("belongs to user 4711")
    expect(readdirSync(data_dir)).toEqual([])
  })

  it("rejects access without authentication unless two settings allow it", async () => {
    const open = { ALMANAC_API__NOAUTH: "true", ALMANAC_API__BIND_HOST: "0.0.0.0" }
    expect(await refusal(newFolder(), open)).toContain("api.noauth")
  })

  it("names the nats-server that does not answer", async () => {
    const line = await refusal(newFolder(), { ALMANAC_NATS__URL: "nats://127.0.0.1:1" })
    expect(line).toContain("nats://127.0.0.1:1")
  })
})

describeWithServer("a server without authentication", () => {
  it("answers everybody on this machine, and others only when that is said twice", async () => {
    const open = { ALMANAC_API__NOAUTH: "true" }
    const everywhere = { ALMANAC_API__BIND_HOST: "0.0.0.0", ALMANAC_API__NOAUTH_UNSAFE: "true" }
    for (const more of [{}, everywhere]) {
      const server = await startServer(newFolder(), { ...open, ...more })
      const response = await fetch(new URL("/v1/blobs", server.url))
      expect(response.status).toBe(200)
      await server.stop()
    }
  })
})

describeWithServer("a stop", () => {
  it("waits for no request longer than it may", async () => {
    const server = await startServer(newFolder())
    await openEvents(server)
    await openPut(server, 200_000)
    await stopsWith(server, "SIGINT")
  })
})

const verbs = [
  ["serve"],
  ["agent"],
  ["rebuild"],
  ["migrate"],
  ["token", "issue"],
  ["trust", "create"],
  ["trust", "revoke"],
  ["secret", "put"],
  ["audit"],
  ["audit", "list"],
  ["audit", "follow"],
  ["audit", "replay"],
  ["audit", "state"],
  ["audit", "verify"],
]

describeWithServer("the command line", () => {
  it("explains each command, with an example", async () => {
    const data_dir = newFolder()
    await each(verbs, spawned_max, async (verb) => {
      const { code, stdout } = await runVerb(data_dir, [...verb, "--help"])
      expect([verb, code]).toEqual([verb, 0])
      expect(stdout).toContain(`almanac ${verb.join(" ")}`)
      assert(/EXAMPLES\n[\s\S]*\n {2}almanac /.test(stdout), `${verb} --help shows an example`)
    })
    expect(readdirSync(data_dir)).toEqual([])
  })

  it("lists every command, and rejects an unknown one", async () => {
    const { stdout } = await runVerb(newFolder(), ["--help"])
    for (const [verb] of verbs) expect(stdout).toMatch(new RegExp(`^ {2}${verb}\\b`, "m"))
    const unknown = await runVerb(newFolder(), ["sevre"])
    expect(unknown.code).not.toBe(0)
    expect(unknown.stderr).toContain("sevre")
  })

  it("issues no token that is good for nothing", async () => {
    const folder = newFolder()
    const { code, stdout, stderr } = await runVerb(folder, ["token", "issue"])
    expect([code, stdout]).toEqual([1, ""])
    expect(stderr).toContain("add --role, --scope or --project")
    expect(readdirSync(folder)).toEqual([])
  })

  it("does the same with and without a running server", async () => {
    const server = await startServer(newFolder())
    const beside = await runVerb(server.data_dir, ["audit", "verify"])
    expect([beside.code, beside.stderr]).toEqual([0, ""])
    expect((await runVerb(server.data_dir, ["rebuild"])).code).toBe(0)
    const token = await runVerb(server.data_dir, ["token", "issue", "--scope", "blobs:read"])
    expect(linesOf(token.stdout)).toHaveLength(1)
    await server.stop()
    const alone = await runVerb(server.data_dir, ["audit", "verify"])
    expect(alone.code).toBe(0)
    expect((await runVerb(server.data_dir, ["rebuild"])).code).toBe(0)
    expect((await runVerb(server.data_dir, ["migrate"])).code).toBe(0)
    expect(natsServersOn(server.data_dir)).toEqual([])

    const again = await startServer(server.data_dir)
    const client = connect(again.url, linesOf(token.stdout)[0] ?? "")
    expect((await client.ask("GET", "/v1/blobs")).status).toBe(200)
    expect((await putBlob(client, Buffer.from("no"), "json")).status).toBe(403)
    client.close()
    await again.stop()
  })
})
