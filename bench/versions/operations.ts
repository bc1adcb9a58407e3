/** The requests that compare two versions. */
import { randomBytes, randomUUID } from "node:crypto"
import { Agent } from "node:http"
import { keyOf } from "../blob/almanac.ts"
import type { Gateway } from "../gateway/almanac-gateway.ts"
import { leafForm, sender } from "../mixed-load/requests.ts"

const kib = 1024
const mib = 1024 * kib
/** About the size of the response to `GET /v1/`. */
const small_read_bytes = 600
/** Number of blobs of each size to get, and of targets to change. */
const blobs = 16
const targets = 4

const sizes = { "4 KiB": 4 * kib, "1 MiB": mib, "16 MiB": 16 * mib } as const
type Size = keyof typeof sizes
type Name =
  | "small read"
  | `${Size} get`
  | `${Size} put`
  | "command"
  | "job list"
  | "dashboard"
  | "prediction"

export type Prepared = Readonly<Record<Name, (n: number) => Promise<unknown>>>

interface Operation {
  readonly name: Name
  /** Requests per round. */
  readonly count: number
  /** Whether a bare server can do the same. */
  readonly is_raw: boolean
}

export const operations: ReadonlyArray<Operation> = [
  { name: "small read", count: 3000, is_raw: true },
  { name: "4 KiB get", count: 4000, is_raw: true },
  { name: "4 KiB put", count: 2000, is_raw: true },
  { name: "1 MiB get", count: 300, is_raw: true },
  { name: "1 MiB put", count: 100, is_raw: true },
  { name: "16 MiB get", count: 32, is_raw: true },
  { name: "16 MiB put", count: 16, is_raw: true },
  { name: "command", count: 400, is_raw: false },
  { name: "job list", count: 1000, is_raw: false },
  { name: "dashboard", count: 1000, is_raw: false },
  { name: "prediction", count: 60, is_raw: false },
]

type Send = ReturnType<typeof sender>
const octets = "application/octet-stream"

/** The same against the blob suite's bare server: its path is the number of bytes to get. */
export const rawOperations = (origin: string): Prepared => {
  const send = sender(origin, new Agent({ keepAlive: true, maxSockets: 16 }))
  const get = (bytes: number) => () => send(`/${bytes}`, {})
  const put = (bytes: number) => () =>
    send("/", { method: "POST", body: randomBytes(bytes), headers: { "content-type": octets } })
  const absent = () => Promise.reject(new Error("a bare server does not do that"))
  return {
    "small read": get(small_read_bytes),
    "4 KiB get": get(sizes["4 KiB"]),
    "4 KiB put": put(sizes["4 KiB"]),
    "1 MiB get": get(sizes["1 MiB"]),
    "1 MiB put": put(sizes["1 MiB"]),
    "16 MiB get": get(sizes["16 MiB"]),
    "16 MiB put": put(sizes["16 MiB"]),
    command: absent,
    "job list": absent,
    dashboard: absent,
    prediction: absent,
  }
}

const blobOperations = async (send: Send, token: string) => {
  const headers = { authorization: `Bearer ${token}` }
  const put = (bytes: number) => () =>
    send("/v1/blobs/stream", {
      method: "POST",
      body: randomBytes(bytes),
      headers: { ...headers, "content-type": octets },
    })
  const getter = async (bytes: number) => {
    const ids: Array<string> = []
    for (let n = 0; n < blobs; n++) ids.push(keyOf(String(await put(bytes)())))
    return (n: number) =>
      send(`/v1/blobs/${ids[n % blobs]}`, { headers: { ...headers, accept: octets } })
  }
  return {
    "4 KiB get": await getter(sizes["4 KiB"]),
    "4 KiB put": put(sizes["4 KiB"]),
    "1 MiB get": await getter(sizes["1 MiB"]),
    "1 MiB put": put(sizes["1 MiB"]),
    "16 MiB get": await getter(sizes["16 MiB"]),
    "16 MiB put": put(sizes["16 MiB"]),
  }
}

/** Renames targets: one command and one event, on a few aggregates. */
const commandOf = async (send: Send, { tenant, trust_id }: Gateway) => {
  const headers = { "x-auth-token": tenant, "content-type": "application/json" }
  // Nothing listens there: the first job of each target fails, and nothing else happens.
  const endpoint = "http://127.0.0.1:9"
  const secret = `${endpoint}/v1/secrets/${randomUUID()}`
  const vault_secret_map = { access_key: secret, secret_key: secret }
  const ids: Array<string> = []
  for (let n = 0; n < targets; n++) {
    const target = { name: `t${n}`, endpoint, bucket: `bucket-${n}`, trust_id, vault_secret_map }
    const made = await send("/v1/targets", {
      method: "POST",
      headers,
      body: JSON.stringify(target),
    })
    ids.push(JSON.parse(String(made)).target.id)
  }
  return (n: number) =>
    send(`/v1/targets/${ids[n % targets]}`, {
      method: "PATCH",
      headers,
      body: JSON.stringify({ name: `t${n}-${randomUUID()}` }),
    })
}

/** The requests of each operation, with the resources that they need. */
export const prepare = async (gateway: Gateway): Promise<Prepared> => {
  const { url, token, tenant, blob } = gateway
  const send = sender(new URL(url).origin, new Agent({ keepAlive: true, maxSockets: 16 }))
  const leaf = await leafForm()
  const asTenant = { headers: { "x-auth-token": tenant } }
  return {
    ...(await blobOperations(send, blob)),
    "small read": () => send("/v1/", { headers: { authorization: `Bearer ${token}` } }),
    command: await commandOf(send, gateway),
    "job list": () => send("/v1/jobs", asTenant),
    dashboard: () => send("/api/dashboard", {}),
    prediction: () => send("/predict", { method: "POST", ...leaf }),
  }
}
