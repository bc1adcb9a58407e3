/**
 * The stream of published events: server-sent events over fetch, because an EventSource cannot send
 * a token. One stream per page, open while a view listens.
 */
import { notifyUnauthorized, requestHeaders } from "./client.ts"

/** The fields of an event that the views use. An event only triggers requests for the data. */
export interface StreamEvent {
  readonly type: string
  readonly source: string
  readonly subject: string
}

export type StreamStatus = "off" | "connecting" | "live" | "lost" | "refused"

/** Share protection only: blob storage may publish thousands of events per second. */
const path = "/v1/events?service=share-protection"
const retry_ms = [1000, 2000, 5000, 15_000] as const
/** Maximum length of an event; a longer one means that this is not our stream. */
const block_chars_max = 1_000_000

const listeners = new Set<(event: StreamEvent) => void>()
let on_status = (_status: StreamStatus) => {}
let stop: AbortController | undefined
let last_id: string | undefined

/** Sets the listener for the status of the stream. */
export const onStreamStatus = (listener: (status: StreamStatus) => void): void => {
  on_status = listener
}

const isStreamEvent = (event: unknown): event is StreamEvent =>
  typeof event === "object" &&
  event !== null &&
  ["type", "source", "subject"].every((name) => typeof Reflect.get(event, name) === "string")

/** Parses one block of the stream: `id:`, `event:` and `data:` lines, or a comment. */
const handleBlock = (block: string) => {
  let data = ""
  for (const line of block.split("\n")) {
    if (line.startsWith("id: ")) last_id = line.slice("id: ".length)
    if (line.startsWith("data: ")) data += line.slice("data: ".length)
  }
  if (data === "") return
  const event: unknown = JSON.parse(data)
  if (isStreamEvent(event)) for (const listener of listeners) listener(event)
}

const readAll = async (body: ReadableStream<Uint8Array>) => {
  const reader = body.getReader()
  const decoder = new TextDecoder()
  let rest = ""
  for (let read = await reader.read(); !read.done; read = await reader.read()) {
    const blocks = (rest + decoder.decode(read.value, { stream: true })).split("\n\n")
    rest = blocks.pop() ?? ""
    if (rest.length > block_chars_max) throw new Error("The event exceeds the maximum length.")
    for (const block of blocks) handleBlock(block)
  }
}

/** Reads the stream until it ends; returns the status afterwards. */
const follow = async (signal: AbortSignal): Promise<StreamStatus> => {
  const headers = {
    ...requestHeaders("text/event-stream"),
    ...(last_id !== undefined && { "last-event-id": last_id }),
  }
  const response = await fetch(path, { headers, cache: "no-store", signal })
  if (response.status === 401) notifyUnauthorized()
  if (response.status === 401 || response.status === 403) return "refused"
  if (!response.ok || response.body === null) return "lost"
  on_status("live")
  await readAll(response.body)
  return "lost"
}

const pause = (ms: number, signal: AbortSignal) =>
  new Promise<void>((resolve) => {
    const timer = setTimeout(resolve, ms)
    signal.addEventListener("abort", () => {
      clearTimeout(timer)
      resolve()
    })
  })

const keepFollowing = async (signal: AbortSignal) => {
  for (let attempt = 0; !signal.aborted; attempt++) {
    const started_at = Date.now()
    const status = await follow(signal).catch((): StreamStatus => "lost")
    if (signal.aborted) return
    on_status(status)
    // A retry would be refused for the same reason.
    if (status === "refused") return
    const longest = retry_ms[retry_ms.length - 1] ?? 0
    if (Date.now() - started_at > longest) attempt = 0
    await pause(retry_ms[Math.min(attempt, retry_ms.length - 1)] ?? longest, signal)
  }
}

/** Registers a listener for events; the returned function removes it. */
export const listen = (listener: (event: StreamEvent) => void): (() => void) => {
  listeners.add(listener)
  if (stop === undefined) {
    stop = new AbortController()
    on_status("connecting")
    void keepFollowing(stop.signal)
  }
  return () => {
    listeners.delete(listener)
    if (listeners.size > 0) return
    stop?.abort()
    stop = undefined
    last_id = undefined
    on_status("off")
  }
}
