/**
 * Published events as they come: server-sent events over fetch, since an EventSource can carry no
 * token. One stream for the whole page, open while a view listens.
 */
import { authorized, tellRefused } from "./ask.ts"

/** What a view needs of an event; the rest is asked for. */
export interface Heard {
  readonly type: string
  readonly source: string
  readonly subject: string
}

export type Standing = "off" | "connecting" | "live" | "lost" | "refused"

/** What moves share protection; blobs would be thousands a second. */
const path = "/v1/events?service=share-protection"
const retry_ms = [1000, 2000, 5000, 15_000] as const
/** One event; a stream that sends more without an end of it is none of ours. */
const block_chars_max = 1_000_000

const listeners = new Set<(event: Heard) => void>()
let on_standing = (_standing: Standing) => {}
let stop: AbortController | undefined
let last_id: string | undefined

/** Told whenever the stream comes or goes. */
export const onStanding = (listener: (standing: Standing) => void): void => {
  on_standing = listener
}

const isHeard = (event: unknown): event is Heard =>
  typeof event === "object" &&
  event !== null &&
  ["type", "source", "subject"].every((name) => typeof Reflect.get(event, name) === "string")

/** One block of the stream: `id:`, `event:` and `data:` lines, or a comment. */
const take = (block: string) => {
  let data = ""
  for (const line of block.split("\n")) {
    if (line.startsWith("id: ")) last_id = line.slice("id: ".length)
    if (line.startsWith("data: ")) data += line.slice("data: ".length)
  }
  if (data === "") return
  const event: unknown = JSON.parse(data)
  if (isHeard(event)) for (const listener of listeners) listener(event)
}

const readAll = async (body: ReadableStream<Uint8Array>) => {
  const reader = body.getReader()
  const decoder = new TextDecoder()
  let rest = ""
  for (let read = await reader.read(); !read.done; read = await reader.read()) {
    const blocks = (rest + decoder.decode(read.value, { stream: true })).split("\n\n")
    rest = blocks.pop() ?? ""
    if (rest.length > block_chars_max) throw new Error("No event is that long.")
    for (const block of blocks) take(block)
  }
}

/** Follows until the other end ends it; answers how it stood then. */
const follow = async (signal: AbortSignal): Promise<Standing> => {
  const headers = {
    ...authorized("text/event-stream"),
    ...(last_id !== undefined && { "last-event-id": last_id }),
  }
  const response = await fetch(path, { headers, cache: "no-store", signal })
  if (response.status === 401) tellRefused()
  if (response.status === 401 || response.status === 403) return "refused"
  if (!response.ok || response.body === null) return "lost"
  on_standing("live")
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
    const begun = Date.now()
    const standing = await follow(signal).catch((): Standing => "lost")
    if (signal.aborted) return
    on_standing(standing)
    // What it was refused for does not change by asking again.
    if (standing === "refused") return
    const longest = retry_ms[retry_ms.length - 1] ?? 0
    if (Date.now() - begun > longest) attempt = 0
    await pause(retry_ms[Math.min(attempt, retry_ms.length - 1)] ?? longest, signal)
  }
}

/** Calls back for each event from now on; what it answers ends that. */
export const listen = (listener: (event: Heard) => void): (() => void) => {
  listeners.add(listener)
  if (stop === undefined) {
    stop = new AbortController()
    on_standing("connecting")
    void keepFollowing(stop.signal)
  }
  return () => {
    listeners.delete(listener)
    if (listeners.size > 0) return
    stop?.abort()
    stop = undefined
    last_id = undefined
    on_standing("off")
  }
}
