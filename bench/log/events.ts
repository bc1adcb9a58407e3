/** Suite: latency from publishing an event to a subscriber, over server-sent events and the bus. */
import { spawn } from "node:child_process"
import { once } from "node:events"
import { mkdir } from "node:fs/promises"
import { get } from "node:http"
import { join } from "node:path"
import { DeliverPolicy, jetstream, jetstreamManager } from "@nats-io/jetstream"
import { connect, type NatsConnection } from "@nats-io/transport-node"
import { events_stream } from "#adapters/published/stream-name.ts"
import { findBinary } from "../../launcher/binaries.mjs"
import { startGateway } from "../gateway/almanac-gateway.ts"
import { machine } from "../harness/machine.ts"
import { type Effort, type Round, summary } from "../harness/round.ts"
import { type Contender, interleave } from "../harness/series.ts"
import type { Settings, Suite } from "../harness/suite.ts"
import { table } from "../harness/table.ts"
import { addressIn, stopServer } from "./nats-server.ts"

/** The subject of the measured events: like those of blobs, about 500 bytes each. */
const subject = "events.blob-storage.blob.blob_stored"
/** Milliseconds between two events, so that the suite measures latency and not a queue. */
const pause_ms = 2

/** A server without accounts; Almanac and the bench use it in the same way. */
const startBus = async (folder: string, onEnd: Settings["onEnd"]) => {
  const path = findBinary("nats-server", {})?.path
  if (!path) throw new Error("no nats-server (npm start fetches one)")
  await mkdir(folder)
  const flags = ["-js", "-sd", folder, "-a", "127.0.0.1", "-p", "-1", "--ports_file_dir", folder]
  const server = spawn(path, flags, { stdio: "ignore" })
  onEnd(() => stopServer(server))
  return await addressIn(folder)
}

/** Publishes one event; returns the time when it was sent, as of performance.now. */
const publisher = (bus: NatsConnection) => {
  let n = 0
  return () => {
    const id = `bench-${++n}`
    const event = {
      specversion: "1.0",
      id: `${n}.0`,
      source: "/almanac/blob-storage/blob",
      type: "blob_stored",
      subject: id,
      time: new Date().toISOString(),
      datacontenttype: "application/json",
      position: n,
      actor: "bench",
      data: { node_id: "n", size: 12, checksum: "c".repeat(44), policy: "p".repeat(200) },
    }
    const sent = performance.now()
    bus.publish(subject, JSON.stringify(event))
    return { id, sent }
  }
}

interface Subscriber {
  /** Calls back with each event's subject. */
  readonly start: (heard: (id: string) => void) => Promise<() => Promise<void>>
}

/** GET /v1/events, with its lines parsed as a client does. */
const overHttp = (url: string, token: string): Subscriber => ({
  start: async (heard) => {
    const headers = { authorization: `Bearer ${token}` }
    const request = get(new URL("events", url), { headers, agent: false })
    const [answer] = await once(request, "response")
    let rest = ""
    const connected = Promise.withResolvers<void>()
    answer.setEncoding("utf8").on("data", (text: string) => {
      connected.resolve()
      const blocks = (rest + text).split("\n\n")
      rest = blocks.pop() ?? ""
      for (const block of blocks) {
        const [, data] = /^data: (.*)$/m.exec(block) ?? []
        if (data !== undefined) heard(JSON.parse(data).subject)
      }
    })
    await connected.promise
    return async () => {
      request.destroy()
    }
  },
})

/** An ordered consumer of the same stream, from now on. */
const onTheBus = (bus: NatsConnection): Subscriber => ({
  start: async (heard) => {
    const consumer = await jetstream(bus).consumers.get(events_stream, {
      deliver_policy: DeliverPolicy.New,
    })
    const messages = await consumer.consume({
      callback: (message) => heard(message.json<{ subject: string }>().subject),
    })
    return async () => {
      await messages.close()
    }
  },
})

const pause = (ms: number) => new Promise((resume) => setTimeout(resume, ms))

/** One event after another, each measured from publishing until the subscriber receives it. */
const seat = (
  name: string,
  subscriber: Subscriber,
  publish: () => { readonly id: string; readonly sent: number },
): Contender => ({
  name,
  round: async ({ seconds }: Effort): Promise<Round> => {
    const waiting = new Map<string, (at: number) => void>()
    const stop = await subscriber.start((id) => waiting.get(id)?.(performance.now()))
    const latencies: Array<number> = []
    const since = performance.now()
    while (performance.now() - since < seconds * 1000) {
      const { promise, resolve } = Promise.withResolvers<number>()
      const { id, sent } = publish()
      waiting.set(id, resolve)
      latencies.push((await promise) - sent)
      waiting.delete(id)
      await pause(pause_ms)
    }
    await stop()
    return summary(latencies, (performance.now() - since) / 1000)
  },
})

export const events: Suite = async ({ folder, rounds, seconds, onEnd }) => {
  const url = await startBus(join(folder, "bus"), onEnd)
  const almanac = await startGateway(join(folder, "almanac"), { ALMANAC_NATS__URL: url })
  onEnd(almanac.stop)
  const bus = await connect({ servers: url })
  onEnd(() => bus.close())
  await (await jetstreamManager(bus)).streams.info(events_stream)
  const publish = publisher(bus)
  const seats = [
    seat("server-sent events", overHttp(almanac.url, almanac.token), publish),
    seat("bare JetStream", onTheBus(bus), publish),
  ]
  const effort = { in_flight: 1, seconds, runs_max: Number.MAX_SAFE_INTEGER }
  const measured = await interleave(seats, effort, rounds, folder)
  const columns = { rate: "events/s", per_run: 1, ours: "server-sent events", latency: true }
  const spent =
    `${rounds} rounds of ${seconds} s each, interleaved, after one discarded; one event at a ` +
    `time, ${pause_ms} ms after the one before.`
  return [await machine(folder, [measured], []), spent, table(measured, columns)].join("\n\n")
}
