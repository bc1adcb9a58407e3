/**
 * Three nats-servers that form one JetStream cluster, with gates in front of all their listeners:
 * each of them can be killed, stopped, and cut off from the others and from all its clients.
 */
import { type ChildProcess, spawn } from "node:child_process"
import { once } from "node:events"
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { type JetStreamManager, jetstreamManager } from "@nats-io/jetstream"
import { connect, type NatsConnection } from "@nats-io/transport-node"
import { findBinary } from "../../../launcher/binaries.mjs"
import { type Gate, type Network, openGate, route_pattern } from "./gate.ts"
import { newFolder, until } from "./server.ts"

export const bus_names = ["nats-1", "nats-2", "nats-3"] as const
export type BusName = (typeof bus_names)[number]

/** Time for a server to load its streams and find the others, on a busy machine. */
const ready_ms_max = 60_000
/** Timeout of the tests' own requests to healthy servers. */
const answer_ms_max = 2_000

/**
 * Configured as in docs/guide-scale-out.md, on free ports. The others reach a server only through
 * its gate, so the servers do not advertise other addresses.
 */
const confOf = (name: BusName, folder: string, gates: ReadonlyMap<BusName, Gate>) => {
  const others = bus_names.filter((other) => other !== name)
  return `
server_name: "${name}"
listen: "127.0.0.1:-1"
ports_file_dir: ${JSON.stringify(folder)}
max_payload: 1MB
jetstream { store_dir: ${JSON.stringify(join(folder, "jetstream"))}, sync_interval: always }
cluster {
  name: "almanac"
  listen: "127.0.0.1:-1"
  advertise: "127.0.0.1:${gates.get(name)?.port}"
  no_advertise: true
  routes: [${others.map((other) => `"nats://127.0.0.1:${gates.get(other)?.port}"`).join(", ")}]
}
`
}

interface Ports {
  readonly nats: readonly [string]
  readonly cluster: readonly [string]
}

const portOf = (url: string) => Number(new URL(url).port)

const portsIn = (folder: string): Ports | undefined => {
  const name = readdirSync(folder).find((file) => file.endsWith(".ports"))
  const text = name === undefined ? "" : readFileSync(join(folder, name), "utf8")
  return text.endsWith("}") ? JSON.parse(text) : undefined
}

/** One server with its folder and gates; not started yet. */
const makeBus = (name: BusName, folder: string, routes: ReadonlyMap<BusName, Gate>) => {
  const conf = join(folder, "nats.conf")
  writeFileSync(conf, confOf(name, folder, routes))
  /** The gates of its clients. */
  const gates: Array<Gate> = []
  let child: ChildProcess | undefined
  let ports: Ports | undefined

  const aim = () => {
    if (ports === undefined) return
    routes.get(name)?.aim(portOf(ports.cluster[0]))
    for (const gate of gates) gate.aim(portOf(ports.nats[0]))
  }
  const signal = (signal: NodeJS.Signals) => child?.kill(signal)
  const end = async (how: NodeJS.Signals) => {
    const running = child
    if (running === undefined) return
    child = undefined
    running.kill("SIGCONT")
    running.kill(how)
    if (running.exitCode === null && running.signalCode === null) await once(running, "exit")
  }
  return {
    name,
    gates,
    aim,
    /** Its own address, behind its gates. */
    url: () => ports?.nats[0] ?? "",
    start: async () => {
      // A killed server leaves its ports file behind.
      for (const file of readdirSync(folder)) {
        if (file.endsWith(".ports")) rmSync(join(folder, file))
      }
      const binary = findBinary("nats-server")?.path ?? "nats-server"
      child = spawn(binary, ["-c", conf, "-l", join(folder, "nats.log")], { stdio: "ignore" })
      ports = await until(`${name} to listen`, ready_ms_max, () => portsIn(folder))
      aim()
    },
    kill: () => end("SIGKILL"),
    stop: () => end("SIGTERM"),
    pause: () => signal("SIGSTOP"),
    resume: () => signal("SIGCONT"),
  }
}

export type Bus = ReturnType<typeof makeBus>

/** Starts all three at once, and waits until they have a leader. */
export const startNatsCluster = async (net: Network) => {
  const folder = newFolder()
  const routes = new Map<BusName, Gate>()
  for (const name of bus_names) {
    routes.set(name, await openGate({ network: net, name, says: route_pattern }))
  }
  const buses = bus_names.map((name) => {
    mkdirSync(join(folder, name))
    return makeBus(name, join(folder, name), routes)
  })
  await Promise.all(buses.map((bus) => bus.start()))
  await untilLed(buses)
  const users = new Set<string>()

  return {
    buses,
    folder,
    bus: (name: BusName) => {
      const found = buses.find((bus) => bus.name === name)
      if (found === undefined) throw new Error(`there is no ${name}`)
      return found
    },
    ask: <A>(question: Question<A>) => ask(buses, question),
    /** The `nats.url` for a client with this name, which identifies the client in cuts. */
    urlFor: async (user: string) => {
      users.add(user)
      const urls: Array<string> = []
      for (const bus of buses) {
        const gate = await openGate({ network: net, name: bus.name, caller: user })
        bus.gates.push(gate)
        bus.aim()
        urls.push(`nats://127.0.0.1:${gate.port}`)
      }
      return urls.join(",")
    },
    /** Cuts a server off from all others in both directions, until the network heals. */
    cutOff: (name: BusName) => {
      for (const other of [...bus_names, ...users, ""]) {
        if (other === name) continue
        net.cut(other, name)
        net.cut(name, other)
      }
    },
    /** Cuts off a client of the servers in the same way. */
    cutOffUser: (user: string) => {
      for (const name of bus_names) {
        net.cut(user, name)
        net.cut(name, user)
      }
    },
    stop: async () => {
      for (const gate of routes.values()) gate.close()
      for (const { gates } of buses) for (const gate of gates) gate.close()
      await Promise.all(buses.map((bus) => bus.kill()))
    },
  }
}

export type NatsCluster = Awaited<ReturnType<typeof startNatsCluster>>

type Question<A> = (jsm: JetStreamManager, connection: NatsConnection) => Promise<A>

/** Queries the servers over a separate connection that bypasses all gates. */
const ask = async <A>(buses: ReadonlyArray<Bus>, question: Question<A>): Promise<A> => {
  const servers = buses.map((bus) => bus.url())
  const connection = await connect({ servers, timeout: answer_ms_max })
  try {
    return await question(
      await jetstreamManager(connection, { timeout: answer_ms_max }),
      connection,
    )
  } finally {
    await connection.close()
  }
}

/** Waits until the servers respond to a request that requires a cluster leader. */
const untilLed = (buses: ReadonlyArray<Bus>) =>
  until("the cluster of nats-servers to have a leader", ready_ms_max, async () => {
    try {
      return await ask(buses, (jsm) => jsm.getAccountInfo())
    } catch {
      return false
    }
  })
