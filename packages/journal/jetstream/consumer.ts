/**
 * One consumer of a JetStream stream that delivers messages in order, with back-pressure.
 *
 * It is never repaired. A gap, a missed heartbeat or a lost connection breaks it, and the reader
 * replaces it with a new consumer after the last message that it took.
 */
import {
  AckPolicy,
  type ConsumerConfig,
  DeliverPolicy,
  type JetStreamManager,
} from "@nats-io/jetstream"
import { createInbox, type Msg, type NatsConnection, nanos, nuid } from "@nats-io/transport-node"
import { type Link, overLink } from "#bus"

/** Limit of messages in flight and buffered. */
interface Window {
  readonly messages: number
  /** Byte limit of one request; undefined: none. */
  readonly request_bytes: number | undefined
}

/** Byte limit of one request, and of the buffer before the next: 16 of the largest commits. */
const window_bytes = 8 * 1024 * 1024

/** Four pages of a reader. */
const page_window: Window = { messages: 2_000, request_bytes: window_bytes }

/**
 * For the last message of each subject. nats-server 2.15 removes a message from its list before it
 * finds that it exceeds the rest of a request, and never puts it back: the message would be lost
 * silently. So requests have no byte limit and fewer messages, at most 128 MiB.
 */
const lasts_window: Window = { messages: 256, request_bytes: undefined }

/** Milliseconds that one request stays open, and between its heartbeats. */
const request_ms = 30_000
const heartbeat_ms = 2_000

/** Milliseconds without a message or heartbeat until the consumer counts as broken. */
const silence_ms = 5_000

/** Milliseconds after which the server deletes an unused consumer. */
const inactive_ms = 30_000

/** A message and its position in the stream. */
export interface Delivered {
  readonly position: number
  readonly message: Msg
}

export interface Consumer {
  /** Takes messages that have arrived, in order, at most `messages_max`. */
  readonly take: (messages_max: number) => ReadonlyArray<Delivered>
  readonly isBroken: () => boolean
  /** Calls back once, when messages are available or the consumer is broken. */
  readonly onReady: (listener: () => void) => void
  /** Stops, and deletes the consumer at the server; never rejects. */
  readonly close: () => Promise<void>
}

/** The stream to read and the connection to it. */
export interface Source {
  readonly connection: NatsConnection
  readonly jsm: JetStreamManager
  readonly link: Link
  /** The stream's name. */
  readonly name: string
}

/** Opens a consumer from `start` on. Rejects with the error of the client or the server. */
export const openConsumer = async (
  { connection, jsm, link, name: stream }: Source,
  start: Partial<ConsumerConfig>,
): Promise<Consumer> => {
  const name = `read-${nuid.next()}`
  const deleteConsumer = () =>
    jsm.consumers.delete(stream, name).then(
      () => undefined,
      () => undefined,
    )
  await overLink(link, () =>
    jsm.consumers.add(stream, {
      ...start,
      name,
      ack_policy: AckPolicy.None,
      inactive_threshold: nanos(inactive_ms),
      // The consumer does not survive the server; the reader then opens another one.
      mem_storage: true,
      num_replicas: 1,
    }),
  ).catch((cause) => {
    // The consumer may exist even though no response arrived.
    if (link.isUp()) void deleteConsumer()
    throw cause
  })
  const is_last_per_subject = start.deliver_policy === DeliverPolicy.LastPerSubject
  const window = is_last_per_subject ? lasts_window : page_window
  return consume(
    { connection, link },
    { name: `${stream}.${name}`, window, forget: deleteConsumer },
  )
}

interface Opened {
  readonly name: string
  readonly window: Window
  readonly forget: () => Promise<void>
}

const consume = (
  { connection, link }: Pick<Source, "connection" | "link">,
  { name, window, forget }: Opened,
): Consumer => {
  const inbox = createInbox()
  const pull = (batch: number) => {
    if (connection.isClosed() || connection.isDraining()) return fail()
    const body = requestBody(batch, window)
    connection.publish(`$JS.API.CONSUMER.MSG.NEXT.${name}`, body, { reply: inbox })
  }
  const waiting = backlog(window)
  const flow = flowOf(pull, waiting, window)
  let sequence = 0
  let broken = false
  let listener: (() => void) | undefined

  /** Defers the callback until all messages of this tick have arrived, for full pages. */
  const notify = () => {
    const callback = listener
    listener = undefined
    if (callback) setImmediate(callback)
  }
  const fail = () => {
    broken = true
    notify()
  }

  const deliver = (message: Msg) => {
    const { position, delivered } = sequencesOf(message.reply ?? "")
    if (broken || delivered !== sequence + 1) return fail()
    sequence = delivered
    waiting.add({ position, message })
    flow.received(1)
    notify()
  }

  const subscription = connection.subscribe(inbox, {
    callback: (error, message) => {
      if (error) return fail()
      if (message.subject !== inbox) return deliver(message)
      const left = undeliveredOf(message)
      if (left === undefined) return fail()
      flow.received(left)
      if (!broken) flow.request()
    },
  })
  const stopWatching = link.onChange(fail)
  const watchdog = setInterval(() => flow.isSilent() && fail(), heartbeat_ms)
  flow.request()

  return {
    take: (messages_max) => {
      const some = waiting.take(messages_max)
      if (!broken) flow.request()
      return some
    },
    isBroken: () => broken,
    onReady: (next) => {
      listener = next
      if (broken || waiting.count() > 0) notify()
    },
    close: async () => {
      broken = true
      clearInterval(watchdog)
      stopWatching()
      subscription.unsubscribe()
      if (link.isUp()) await forget()
    },
  }
}

/** Keeps requests open for the free part of the window. */
const flowOf = (
  pull: (batch: number) => void,
  waiting: ReturnType<typeof backlog>,
  { messages }: Window,
) => {
  let requested = 0
  let last_seen = performance.now()
  return {
    /** Counts messages that arrived, or that an ended request no longer covers. */
    received: (count: number) => {
      requested -= count
      last_seen = performance.now()
    },
    /** Requests more when half of the window is free. */
    request: () => {
      const batch = messages - requested - waiting.count()
      if (batch < messages / 2 || waiting.bytes() >= window_bytes) return
      // Silence counts only while a request is open.
      if (requested <= 0) last_seen = performance.now()
      requested += batch
      pull(batch)
    },
    isSilent: () => requested > 0 && performance.now() - last_seen > silence_ms,
  }
}

const requestBody = (batch: number, { request_bytes }: Window) =>
  JSON.stringify({
    batch,
    ...(request_bytes !== undefined && { max_bytes: request_bytes }),
    expires: nanos(request_ms),
    idle_heartbeat: nanos(heartbeat_ms),
  })

/** Messages that have arrived and are not taken yet. */
const backlog = ({ messages }: Window) => {
  const arrived: Array<Delivered> = []
  let taken = 0
  let bytes = 0
  return {
    count: () => arrived.length - taken,
    bytes: () => bytes,
    add: (delivered: Delivered) => {
      arrived.push(delivered)
      bytes += delivered.message.data.length
    },
    take: (messages_max: number) => {
      const some = arrived.slice(taken, taken + messages_max)
      taken += some.length
      for (const { message } of some) bytes -= message.data.length
      // Not on each call, because it moves the rest of the array.
      if (taken === arrived.length || taken >= messages) taken -= arrived.splice(0, taken).length
      return some
    },
  }
}

/**
 * Parses the sequences in the reply subject of a delivered message:
 * `$JS.ACK.[<domain>.<account>.]<stream>.<consumer>.<tries>.<position>.<delivered>.<time>.…`
 */
const sequencesOf = (reply: string) => {
  const tokens = reply.split(".")
  const at = tokens.length === 9 ? 5 : 7
  return { position: Number(tokens[at]), delivered: Number(tokens[at + 1]) }
}

/** Messages that an ended request did not deliver; undefined if the consumer itself ended. */
const undeliveredOf = ({ headers }: Msg) => {
  if (headers?.code === 100) return 0
  const left = headers?.get("Nats-Pending-Messages")
  return left ? Number(left) : undefined
}
