/**
 * Subscribers as docs/events.md describes them: server-sent events that resume by their last id, a
 * webhook receiver, and a durable consumer on the bus. Each records the events it received;
 * `standing` returns the events that are still valid.
 */
import { createServer } from "node:http"
import { setTimeout as pause } from "node:timers/promises"
import { AckPolicy, JetStreamApiError, jetstream, jetstreamManager } from "@nats-io/jetstream"
import { connect as connectBus } from "@nats-io/transport-node"
import type { CloudEvent } from "#schemas/cloud-event.ts"
import { type Server, until } from "../../world/server/server.ts"
import { type Reader, read } from "../../world/system/events-served.ts"

const wait_ms = 60_000
const stream = "ALMANAC_EVENTS"

export type Wanted = (event: CloudEvent) => boolean

/** Passes every filter. */
export const isRestoration = ({ type }: CloudEvent) => type === "state_restored"

/** The restore whose history contains the event; undefined: before any restore. */
const restoreOf = ({ id }: CloudEvent) => id.split(".")[2]

/** The received events that are still valid: a restore revokes events after its position. */
export const standing = (received: ReadonlyArray<CloudEvent>) => {
  let kept: Array<CloudEvent> = []
  for (const event of received) {
    if (isRestoration(event)) {
      const { position, restore_id } = event.data
      kept = kept.filter((one) => one.position <= Number(position) || restoreOf(one) === restore_id)
    }
    kept.push(event)
  }
  return kept.map(({ id }) => id)
}

/** A subscriber and the events it has received so far, oldest first. */
export interface Subscriber {
  readonly name: string
  readonly wanted: Wanted
  readonly received: () => ReadonlyArray<CloudEvent>
  /** Connects and continues where it left off. */
  readonly attach: (server: Server) => Promise<void>
  readonly detach: () => Promise<void>
  /** Webhooks may deliver an event repeatedly, and events of different subjects in any order. */
  readonly is_webhook: boolean
}

/**
 * Server-sent events with this token and query; resumes with `Last-Event-ID` after each disconnect.
 */
export const byStream = (
  name: string,
  tokenOf: (server: Server) => string,
  query: string,
  wanted: Wanted,
): Subscriber => {
  const readers: Array<Reader> = []
  const blocks = () => readers.flatMap((reader) => reader.blocks)
  let leave: (() => Promise<void>) | undefined
  const connectAgain = async (server: Server) => {
    const last = blocks().at(-1)
    const after = last === undefined ? "0" : `${last.epoch}-${last.id}`
    const reader = await read(`${server.url}/v1/events?${query}`, tokenOf(server), after)
    if (reader.status === 200) readers.push(reader)
    return reader
  }
  return {
    name,
    wanted,
    is_webhook: false,
    received: () => blocks().map(({ event }) => event),
    attach: async (server) => {
      let is_over = false
      let reader = await connectAgain(server)
      const working = (async () => {
        while (!is_over) {
          await reader.ended
          await pause(100)
          if (!is_over) reader = await connectAgain(server).catch(() => reader)
        }
      })()
      leave = async () => {
        is_over = true
        reader.leave()
        await working
      }
    },
    detach: async () => {
      await leave?.()
      leave = undefined
    },
  }
}

/** A webhook receiver. Its webhook outlives servers; `url` is the webhook's URL. */
export const byWebhook = async (name: string, wanted: Wanted) => {
  const received: Array<CloudEvent> = []
  let is_open = true
  const server = createServer((request, response) => {
    const parts: Array<Buffer> = []
    request.on("data", (part: Buffer) => parts.push(part))
    request.on("end", () => {
      if (is_open) received.push(JSON.parse(Buffer.concat(parts).toString()))
      response.writeHead(is_open ? 204 : 503).end()
    })
  })
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
  const address = server.address()
  if (address === null || typeof address === "string") throw new Error("no port")
  const subscriber: Subscriber = {
    name,
    wanted,
    is_webhook: true,
    received: () => received,
    attach: () => {
      is_open = true
      return Promise.resolve()
    },
    detach: () => {
      is_open = false
      return Promise.resolve()
    },
  }
  return { ...subscriber, url: `http://127.0.0.1:${address.port}/`, close: () => server.close() }
}

/** Events after one number and up to another, over HTTP, which the stream no longer keeps. */
const missed = async (server: Server, after: number, last: number) => {
  const reader = await read(`${server.url}/v1/events`, server.credentials.admin.token, after)
  await until("the missed events", wait_ms, () => (reader.blocks.at(-1)?.id ?? 0) >= last)
  reader.leave()
  return reader.blocks.filter(({ id }) => id <= last).map(({ event }) => event)
}

/** Whether the stream or the consumer no longer exists. */
const isGone = (cause: unknown) =>
  cause instanceof JetStreamApiError && (cause.code === 10_014 || cause.code === 10_059)

/**
 * A durable consumer of all events. If it no longer exists, it starts again at the first event; if
 * the stream's sequences have a gap, it reads the missing events over HTTP, as docs/events.md
 * specifies.
 */
export const byDurable = (name: string, durable_name: string): Subscriber => {
  let received: Array<CloudEvent> = []
  let last = 0
  let is_known = false
  let stop: (() => Promise<void>) | undefined
  const attach = async (server: Server) => {
    const { url, user, password: pass } = server.credentials.nats
    const connection = await connectBus({ servers: url, user, pass })
    const [jsm, js] = [await jetstreamManager(connection), jetstream(connection)]
    const stopping = new AbortController()
    const made = async () => {
      if (!is_known) {
        await jsm.consumers.add(stream, { durable_name, ack_policy: AckPolicy.Explicit })
        ;[received, last, is_known] = [[], 0, true]
      }
      return await js.consumers.get(stream, durable_name)
    }
    const take = async () => {
      const message = await (await made()).next({ expires: 1_000 })
      if (message === null) return
      if (message.seq > last + 1) received.push(...(await missed(server, last, message.seq - 1)))
      if (message.seq > last) received.push(message.json<CloudEvent>())
      last = Math.max(last, message.seq)
      await message.ackAck()
    }
    const working = (async () => {
      while (!stopping.signal.aborted) {
        await take().catch(async (cause: unknown) => {
          // The error is explicit: the consumer's state is no longer valid, and it starts again.
          if (isGone(cause)) is_known = false
          await pause(100)
        })
      }
    })()
    stop = async () => {
      stopping.abort()
      await working
      await connection.close()
    }
  }
  return {
    name,
    wanted: () => true,
    is_webhook: false,
    received: () => received,
    attach,
    detach: async () => {
      await stop?.()
      stop = undefined
    },
  }
}
