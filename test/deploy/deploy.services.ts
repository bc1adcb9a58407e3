/**
 * The services of the compose file, without containers: same settings, secrets and environment, and
 * one loopback address per host. Only PostgreSQL and the proxy are omitted.
 *
 * Source: issue 10 §6; decision 0144.
 */
import { execFileSync, spawn } from "node:child_process"
import { once } from "node:events"
import { cpSync, mkdirSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { afterAll, assert, beforeAll, expect, it } from "vitest"
import { findBinary } from "../../launcher/binaries.mjs"
import { describeWithServer } from "../world/programs/nats.ts"
import { getBlob, hashed, putBlob } from "../world/server/blob-client.ts"
import { connect } from "../world/server/client.ts"
import {
  cleanUp,
  newFolder,
  outputOf,
  type Server,
  startServer,
  until,
} from "../world/server/server.ts"
import { compose } from "./files.ts"

const start_ms_max = 120_000
/** Time for blob nodes to join and for the log to elect its leader. */
const settle_ms_max = 60_000
const port = 9797

const { services } = compose()

describeWithServer("the processes of the compose file", () => {
  const folder = newFolder()
  // A network for this run only, because others use the same ports.
  const network = `127.${process.pid % 200}.${(process.pid >> 8) % 250}`
  const hosts = new Map(Object.keys(services).map((name, i) => [name, `${network}.${i + 1}`]))
  const servers = new Map<string, Server>()
  const buses: Array<ReturnType<typeof spawn>> = []
  let admin_token = ""

  /** A text with the hosts and paths of this machine. */
  const placed = (text: string) =>
    [...hosts]
      .reduce((all, [name, host]) => all.replaceAll(`${name}:`, `${host}:`), text)
      .replaceAll("/run/secrets", join(folder, "deploy/secrets"))

  const startBus = (name: string) => {
    const home = join(folder, name)
    mkdirSync(home)
    const conf = readFileSync(join(folder, "deploy/nats/nats.conf"), "utf8")
    writeFileSync(join(home, "nats.conf"), conf.replaceAll("0.0.0.0", hosts.get(name) ?? ""))
    const passwords = readFileSync(join(folder, "deploy/secrets/nats-passwords.conf"), "utf8")
    writeFileSync(join(home, "passwords.conf"), placed(passwords))
    const binary = findBinary("nats-server")?.path ?? "nats-server"
    const env = { ...process.env, NATS_NAME: name, NATS_STORE: join(home, "store") }
    buses.push(spawn(binary, ["--config", join(home, "nats.conf")], { env, stdio: "ignore" }))
  }

  const start = async (name: string) => {
    const given = Object.entries(services[name]?.environment ?? {})
    const environment = given
      .filter(([variable]) => !variable.startsWith("ALMANAC_DATABASE__"))
      .map(([variable, value]) => [variable, placed(value)])
    const server = await startServer(
      join(folder, `data-${name}`),
      {
        ...Object.fromEntries(environment),
        ALMANAC_CONFIG: join(folder, "almanac.toml"),
        ALMANAC_API__BIND_HOST: hosts.get(name) ?? "",
        ALMANAC_API__BIND_PORT: String(port),
      },
      start_ms_max,
    )
    servers.set(name, server)
  }
  const client = (name: string) => connect(`http://${hosts.get(name)}:${port}`, admin_token)

  beforeAll(async () => {
    cpSync("deploy", join(folder, "deploy"), { recursive: true })
    execFileSync("sh", [join(folder, "deploy/secrets.sh")])
    admin_token = readFileSync(join(folder, "deploy/secrets/admin-token"), "utf8")
    const settings = readFileSync("deploy/almanac.toml", "utf8")
    writeFileSync(join(folder, "almanac.toml"), placed(settings))
    for (const name of ["nats-1", "nats-2", "nats-3"]) startBus(name)
    await start("conductor-1")
    await Promise.all([start("gateway-1"), start("blob-1")])
    await Promise.all([start("blob-2"), start("blob-3")])
  }, 3 * start_ms_max)

  afterAll(async () => {
    await cleanUp()
    for (const bus of buses) {
      bus.kill("SIGKILL")
      if (bus.exitCode === null && bus.signalCode === null) await once(bus, "exit")
    }
  }, settle_ms_max)

  it("are all ready, by the answer that probes and the proxy ask for", async () => {
    for (const name of servers.keys()) {
      const response = client(name)
      for (const path of ["/livez", "/readyz"]) {
        await until(`${name} ${path}`, settle_ms_max, async () => {
          const { status } = await response.ask("GET", path)
          return status === 200
        })
      }
      response.close()
    }
  })

  it("keep a blob on three nodes, and any of them answers it", async () => {
    const [one, other] = [client("blob-1"), client("blob-3")]
    await until("three nodes", settle_ms_max, async () => {
      const state = await one.json<{ nodes: ReadonlyArray<{ state: string }> }>(
        "GET",
        "/v1/cluster/state",
      )
      return state.nodes.filter(({ state }) => state === "active").length === 3
    })
    const bytes = Buffer.from("compose")
    expect((await putBlob(one, bytes, "raw")).status).toBeLessThan(300)
    expect(String(await getBlob(other, hashed(bytes).id, "raw"))).toBe("compose")
    one.close()
    other.close()
  })

  it("show Prometheus the leader, and never two of them", async () => {
    const text = async (name: string) => {
      const response = client(name)
      const { status, body } = await response.ask("GET", "/metrics")
      response.close()
      assert.equal(status, 200, `${name}\n${outputOf(servers.get(name) ?? assert.fail(name))}`)
      return body.toString()
    }
    const lease = 'almanac_lease_held{lease="share-protection-conductor"} 1'
    assert.include(await text("conductor-1"), lease)
    for (const name of ["gateway-1", "blob-1"]) assert.notInclude(await text(name), lease)
    for (const name of servers.keys()) {
      assert.notMatch(await text(name), /^almanac_collector_up\{.*\} 0$/m, name)
    }
    assert.match(await text("gateway-1"), /^almanac_read_model_lag_seconds\{.*\} 0$/m)
    assert.match(await text("gateway-1"), /^almanac_log_position [1-9]/m)
    assert.match(await text("blob-2"), /^almanac_volume_capacity_bytes [1-9]/m)
  })

  it(
    "end in the time that they are given, with code 0",
    async () => {
      const given_s = Number(services["gateway-1"]?.stop_grace_period?.replace("s", ""))
      const begun = performance.now()
      const ended = await Promise.all([...servers.values()].map((server) => server.stop()))
      expect(ended.map(({ code }) => code)).toEqual([...servers.keys()].map(() => 0))
      // Five run at once on a busy machine: allow twice the time.
      expect((performance.now() - begun) / 1000).toBeLessThan(2 * given_s)
    },
    settle_ms_max,
  )
})
