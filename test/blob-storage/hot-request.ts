/** Requests for the blob service, well-formed and malformed, from a seed; and their answers. */
import { type Agent, request } from "node:http"
import { noise } from "../contract/blob-store-bytes.ts"
import { seeded } from "../process/seeded.ts"
import { base64 } from "./blob-service.ts"

export interface Asked {
  readonly method: string
  readonly path: string
  readonly headers: Readonly<Record<string, string>>
  readonly body?: Uint8Array | undefined
  readonly is_chunked: boolean
}

export interface Answered {
  readonly status: number | undefined
  readonly headers: ReadonlyArray<string>
  readonly body: string
}

type Draw = <A>(choices: ReadonlyArray<A>) => A

/** Few contents, so that puts meet what is there; sizes on both sides of each bound. */
const sizes = [0, 1, 5, 5, 100, 4096, 65_537, 262_143, 262_144, 300_000, 983_041, 1_100_000]
export const contents = sizes.map((size, seed) => noise(seed, size))

/** Enough that it is on its way to the store before its message ends. */
const long_digits = base64(noise(99, 500_000))

const policies = ["NONE", "REPLICA2", "REPLICA3", "UNSPECIFIED", "EC42", "EC82", "OTHER"].map(
  (name) => `REPLICATION_POLICY_${name}`,
)

const authorizations = [
  ...Array.from({ length: 80 }, () => "Bearer writer"),
  "bearer reader",
  "Bearer  writer ",
  "Bearer reader",
  "Bearer nobody",
  "Bearer expired",
  "Bearer outage",
  "Basic d3JpdGVy",
  "Bearer",
  "Bearer admin",
  undefined,
]

const jsonBodies: ReadonlyArray<(draw: Draw) => string> = [
  (draw) => JSON.stringify({ data: base64(draw(contents.slice(0, 7))) }),
  (draw) => JSON.stringify({ data: base64(draw(contents.slice(0, 7))), policy: draw(policies) }),
  (draw) => JSON.stringify({ policy: draw(policies), data: base64(draw(contents.slice(0, 5))) }),
  (draw) => JSON.stringify({ data: base64(draw(contents.slice(0, 5))), labels: { a: "é", b: "" } }),
  () => JSON.stringify({ data: "aGk", labels: { a: 1 } }),
  () => JSON.stringify({ data: "aGk", labels: null, policy: null, more: [1, { data: "x" }] }),
  () => '{"d\\u0061ta":"aGk="}',
  () => '{"data":"\\u002b+\\/\\/"}',
  () => '{"data":"not base64!"}',
  () => '{"data":"aGl="}',
  () => '{"data":5}',
  () => '{"data":null}',
  () => '{"data":"aGk=","data":"aGkh"}',
  () => '{"data":"aGk="} {"data":"aGk="}',
  () => '{"data":"aGk=",}',
  () => '{"data":"aGk="',
  () => '[{"data":"aGk="}]',
  () => '  {"data":"aGk="}  \n',
  () => '{"data":"aGk="} x',
  () => '{"labels":{}}',
  () => '"hello"',
  () => "",
  () => `{"data":"${"A".repeat(1_300_000)}"}`,
  () => `{"more":"${"A".repeat(100_000)}"}`,
  ...[10, 11].map((place) => (draw: Draw) => {
    const policy = draw(policies)
    return JSON.stringify({ data: base64(contents[place] ?? ""), policy, labels: { big: "1" } })
  }),
  () => `{"data":"${long_digits}!","policy":"REPLICATION_POLICY_NONE"}`,
  () => `{"data":"${long_digits}","data":"${base64(contents[9] ?? "")}"}`,
  () => `{"data":"${long_digits}","d\\u0061ta":"aGk="}`,
  () => `{"data":"${long_digits}"} {"data":"aGk="}`,
]

const types = ["application/json", "application/json; charset=utf-8", "text/plain", undefined]
const raw_types = [
  "application/octet-stream",
  "application/octet-stream",
  "application/octet-stream",
  "Application/Octet-Stream; a=b",
  "application/json",
  "application/x-ndjson",
  undefined,
]
const accepts = [
  "application/octet-stream",
  "application/octet-stream",
  "application/octet-stream",
  undefined,
  "*/*",
  "application/json",
  "application/octet-stream;q=0.5, application/json",
  "application/json;q=0.1, application/octet-stream",
  "text/html",
]
const ranges = [
  "bytes=0-0",
  "bytes=1-3",
  "bytes=4090-",
  "bytes=-5",
  "bytes=5-1",
  "bytes=0-1,3-4",
  "bytes=99999999-",
  "lines=1-2",
  "bytes=0-999999999",
  "bytes=-0",
]
const request_ids = ["mine", "a b\u00e9", "x".repeat(200)]
const long_label = "x".repeat(9000)

type Some = Readonly<Record<string, string | undefined>>

/** Headers that mean little or much on any path; each comes seldom. */
const oddHeaders = (draw: Draw): Some =>
  draw<Some>([
    ...Array.from({ length: 40 }, () => ({})),
    ...request_ids.map((id) => ({ "x-request-id": id })),
    { "x-auth-token": "writer" },
    { "x-almanac-position": "1" },
    { "x-almanac-position": "soon" },
    { "idempotency-key": "k" },
    { "idempotency-key": "\t" },
    { "content-encoding": "gzip" },
    { "if-none-match": "*" },
    { "if-none-match": '"a"' },
    { origin: "https://a.example", cookie: "a=b" },
    { connection: "close" },
  ])

const labelHeaders = (draw: Draw): Some =>
  draw<Some>([
    {},
    {},
    {},
    {},
    {},
    {},
    { "x-label-a": "1", "X-Label-B": "%C3%A9" },
    { "x-label-%41": "a b", "x-label-c": "%zz" },
    { "x-label-big": long_label, "x-label-other": "1" },
    Object.fromEntries(Array.from({ length: 65 }, (_, n) => [`x-label-${n}`, ""])),
  ])

const putOf = (draw: Draw): Omit<Asked, "is_chunked" | "headers"> & { readonly headers: Some } => ({
  method: "PUT",
  path: draw(["/v1/blobs", "/v1/blobs", "/v1/blobs", "/v1/blobs/", "/v1/blobs?policy=x"]),
  headers: { "content-type": draw([...types.slice(0, 1), ...types.slice(0, 1), ...types]) },
  body: Buffer.from(draw(jsonBodies)(draw)),
})

const postOf = (draw: Draw) => ({
  method: "POST",
  path:
    "/v1/blobs/stream" +
    draw(["", "", "", "?", "?id=x", "?policy=no", ...policies.map((name) => `?policy=${name}`)]),
  headers: { "content-type": draw(raw_types), ...labelHeaders(draw) },
  body: draw<Uint8Array | undefined>([...contents, undefined]),
})

const itemOf = (draw: Draw, ids: ReadonlyArray<string>) => {
  const id = draw([...ids, ...ids, "0".repeat(32)])
  const spelled = [
    ...Array.from({ length: 20 }, () => id),
    id.toUpperCase(),
    Buffer.from(id, "hex").toString("base64url"),
    id.slice(1),
    `%${id.charCodeAt(0).toString(16)}${id.slice(1)}`,
    "%zz",
  ]
  const below = draw([
    "",
    "",
    "",
    "",
    "/stream",
    "/stream",
    "/stat",
    "/",
    "/none",
    "?scope=node",
    "?",
  ])
  return {
    method: draw([...Array(14).fill("GET"), "HEAD", "HEAD", "HEAD", "DELETE", "PATCH"]),
    path: `/v1/blobs/${draw(spelled)}${below}`,
    headers: {
      accept: draw(accepts),
      range: draw([undefined, undefined, ...ranges]),
      "if-none-match": draw([...Array(12).fill(undefined), `"${id}"`, 'W/"a", *']),
      "if-range": draw([undefined, undefined, undefined, `"${id}"`, '"a"']),
    },
    body: draw([...Array(20).fill(undefined), Buffer.from("{}")]),
  }
}

/** Puts of all `contents`, whose these `ids` are, and so many requests: the same for a seed. */
export const requestsOf = (seed: number, count: number, ids: ReadonlyArray<string>) => {
  const { next } = seeded(seed)
  const draw: Draw = (choices) => {
    const chosen = choices[Math.floor(next() * choices.length)]
    // The index is below the length, and no list is empty.
    return chosen as (typeof choices)[number]
  }
  const stored = contents.map((body) => ({
    method: "POST",
    path: "/v1/blobs/stream",
    body,
    is_chunked: false,
    headers: { authorization: "Bearer writer", "content-type": "application/octet-stream" },
  }))
  const drawn = Array.from({ length: count }, (): Asked => {
    const { headers, ...asked } = draw([putOf, postOf, itemOf, itemOf])(draw, ids)
    const all = { authorization: draw(authorizations), ...headers, ...oddHeaders(draw) }
    const given = Object.entries(all).filter((entry): entry is [string, string] => !!entry[1])
    return { ...asked, headers: Object.fromEntries(given), is_chunked: next() < 0.3 }
  })
  return [...stored, ...drawn]
}

const changing = /"(request_id|created_at|modified_at)":("[^"]*"|\d+)/g
/** Of each answer alone. */
const own_headers = ["date", "x-request-id"]
/**
 * Of its connection: whether one whose body is not wanted any more goes on hangs on how much of
 * that is still to come, which is not the same twice.
 */
const connection_headers = ["connection", "keep-alive"]
const drained_bytes_max = 256 * 1024

/** The answer without what is of this one request alone. */
export const ask = (url: string, asked: Asked, agent: Agent) =>
  new Promise<Answered>((resolve) => {
    const is_long = (asked.body?.length ?? 0) > drained_bytes_max
    const left_out = new Set(is_long ? [...own_headers, ...connection_headers] : own_headers)
    const gone = ({ message }: Error) => resolve({ status: undefined, headers: [], body: message })
    const { method, path, headers, body, is_chunked } = asked
    const length = body && !is_chunked ? { "content-length": String(body.length) } : {}
    const chunked = body && is_chunked ? { "transfer-encoding": "chunked" } : {}
    const all = { ...headers, ...length, ...chunked }
    // The next request must not meet a connection that is about to end.
    const own = { method, headers: all, agent: is_long ? false : agent }
    const sent = request(url + path, own, (answer) => {
      const parts: Array<Buffer> = []
      answer.on("data", (part) => parts.push(part))
      answer.on("error", gone)
      answer.on("end", () => {
        const own_id = answer.headers["x-request-id"]
        const said = Object.entries(answer.headers)
          .filter(([name]) => !left_out.has(name))
          .map(([name, value]) => `${name}: ${value === own_id ? "its own" : value}`)
        const text = Buffer.concat(parts).toString("latin1").replaceAll(changing, '"$1":0')
        resolve({ status: answer.statusCode, headers: said.toSorted(), body: text })
      })
    })
    sent.on("error", gone)
    if (body && is_chunked && body.length > 3) {
      sent.write(body.subarray(0, body.length >> 1))
      sent.end(body.subarray(body.length >> 1))
    } else sent.end(body)
  })
