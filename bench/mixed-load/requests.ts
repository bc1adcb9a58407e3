/** The requests of the mixed load: their content and their rates. */
import { randomBytes, randomUUID } from "node:crypto"
import { once } from "node:events"
import { Agent, type IncomingMessage, type RequestOptions, request } from "node:http"
import { setTimeout as pause } from "node:timers/promises"
import sharp from "sharp"
import { keyOf } from "../blob/almanac.ts"
import type { Gateway } from "../gateway/almanac-gateway.ts"

const small_bytes = 4096
const large_bytes = 4 * 1024 * 1024
/** Blobs that exist at a time; the oldest is deleted so that the disk does not fill up. */
const small_max = 2000
const large_max = 64
/** Milliseconds for which an event stream stays open. */
const stream_ms = 2000
const image_width = 1600
const image_height = 1200

type Kind = readonly [name: string, per_s: number, send: () => Promise<unknown>]

export interface Mix {
  readonly kinds: ReadonlyArray<Kind>
  /** Sends one request of each kind, so that later ones open no new resources. */
  readonly once: () => Promise<void>
  readonly close: () => void
}

interface Sent extends RequestOptions {
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: Uint8Array | string
  /** A status that also counts as success. */
  readonly accepts?: number
}

const bodyOf = async (response: IncomingMessage) => {
  const chunks: Array<Buffer> = []
  for await (const chunk of response) chunks.push(chunk)
  return Buffer.concat(chunks)
}

/** A photograph as a form for `POST /predict`. */
export const leafForm = async () => {
  const image = await sharp({
    create: {
      width: image_width,
      height: image_height,
      channels: 3,
      background: "green",
      noise: { type: "gaussian", mean: 128, sigma: 30 },
    },
  })
    .jpeg()
    .toBuffer()
  const boundary = "almanac-mixed-load"
  const disposition = 'Content-Disposition: form-data; name="file"; filename="leaf.jpg"'
  const head = `--${boundary}\r\n${disposition}\r\nContent-Type: image/jpeg\r\n\r\n`
  const body = Buffer.concat([Buffer.from(head), image, Buffer.from(`\r\n--${boundary}--\r\n`)])
  return { body, headers: { "content-type": `multipart/form-data; boundary=${boundary}` } }
}

/** Sends a request over `agent`; rejects on any status except 2xx and `accepts`. */
export const sender = (origin: string, agent: Agent) => async (path: string, sent: Sent) => {
  const { body, accepts, ...options } = sent
  const length = body === undefined ? {} : { "content-length": Buffer.byteLength(body) }
  const headers = { ...options.headers, ...length }
  const outgoing = request(new URL(path, origin), { agent, ...options, headers }).end(body)
  const [response]: [IncomingMessage] = (await once(outgoing, "response")) as [IncomingMessage]
  const answer = await bodyOf(response)
  const status = response.statusCode ?? 0
  const is_good = (status >= 200 && status <= 299) || status === accepts
  if (!is_good) throw new Error(`${status} ${answer.toString().slice(0, 200)}`)
  return answer
}

type Send = ReturnType<typeof sender>

/** Puts, gets, deletes and lists of blobs, and uploads that end halfway. */
const blobKinds = async (origin: string, token: string, send: Send): Promise<Array<Kind>> => {
  const headers = { authorization: `Bearer ${token}` }
  const plain = { ...headers, "content-type": "application/octet-stream" }
  const kept = { small: [] as string[], large: [] as string[] }

  const put = async (ids: Array<string>, bytes: number, count_max: number) => {
    const body = randomBytes(bytes)
    const answer = await send("/v1/blobs/stream", { method: "POST", headers: plain, body })
    ids.push(keyOf(answer.toString()))
    const oldest = ids.length > count_max ? ids.shift() : undefined
    if (oldest !== undefined) await send(`/v1/blobs/${oldest}`, { method: "DELETE", headers })
  }
  const get = async (ids: Array<string>, bytes: number) => {
    // Not one of the oldest half, which another request may be deleting.
    const id = ids[Math.floor((ids.length * (1 + Math.random())) / 2)]
    if (id === undefined) return
    const accept = { ...headers, accept: "application/octet-stream" }
    const { length } = await send(`/v1/blobs/${id}`, { headers: accept })
    if (length !== bytes) throw new Error(`a blob of ${bytes} bytes came with ${length}`)
  }
  const abort = async () => {
    const options = { method: "POST", headers: { ...plain, "content-length": large_bytes } }
    const outgoing = request(new URL("/v1/blobs/stream", origin), { ...options, agent: false })
    outgoing.on("error", () => undefined).write(randomBytes(large_bytes / 2))
    await pause(stream_ms / 10)
    outgoing.destroy()
  }
  for (let n = 0; n < 8; n++) {
    await put(kept.small, small_bytes, small_max)
    await put(kept.large, large_bytes, large_max)
  }
  return [
    ["small put", 25, () => put(kept.small, small_bytes, small_max)],
    ["small get", 30, () => get(kept.small, small_bytes)],
    ["4 MiB put", 2, () => put(kept.large, large_bytes, large_max)],
    ["4 MiB get", 4, () => get(kept.large, large_bytes)],
    ["blob list", 5, () => send("/v1/blobs?limit=100", { headers })],
    ["aborted upload", 1, abort],
  ]
}

/** Opens an event stream, reads what arrives, and disconnects. */
const follow = async (origin: string, token: string) => {
  const headers = { authorization: `Bearer ${token}` }
  const outgoing = request(new URL("/v1/events", origin), { headers, agent: false }).end()
  const [response]: [IncomingMessage] = (await once(outgoing, "response")) as [IncomingMessage]
  if (response.statusCode !== 200) throw new Error(`${response.statusCode} of the event stream`)
  response.on("error", () => undefined).resume()
  await pause(stream_ms)
  outgoing.destroy()
}

export const mixOf = async ({ url, token, tenant, trust_id, blob }: Gateway): Promise<Mix> => {
  const { origin } = new URL(url)
  const agent = new Agent({ keepAlive: true, maxSockets: 16 })
  const send = sender(origin, agent)
  const leaf = await leafForm()
  const headers = { "x-auth-token": tenant, "content-type": "application/json" }
  // Nothing listens there: the target's job fails, as does each later enrollment.
  const endpoint = "http://127.0.0.1:9"
  const secret = `${endpoint}/v1/secrets/${randomUUID()}`
  const vault_secret_map = { access_key: secret, secret_key: secret }
  const target = { name: "mixed-load", endpoint, bucket: "none", trust_id, vault_secret_map }
  const body = JSON.stringify(target)
  const begun = JSON.parse(String(await send("/v1/targets", { method: "POST", headers, body })))
  // 409: the previous job is still running.
  const enroll = () =>
    send(`/v1/targets/${begun.target.id}/enroll`, { method: "POST", headers, accepts: 409 })
  const kinds: ReadonlyArray<Kind> = [
    ...(await blobKinds(origin, blob, send)),
    ["job list", 8, () => send("/v1/jobs", { headers })],
    ["new job", 0.2, enroll],
    ["dashboard", 5, () => send("/api/dashboard", {})],
    ["prediction", 3, () => send("/predict", { method: "POST", ...leaf })],
    ["event stream", 2, () => follow(origin, token)],
  ]
  return {
    kinds,
    once: async () => {
      for (const [, , sendOne] of kinds) await sendOne()
    },
    close: () => agent.destroy(),
  }
}
