/**
 * The in-memory part of S3 that a preflight needs, with configurable false responses. Accepts any
 * keys.
 */
import { randomUUID } from "node:crypto"
import { createServer, type IncomingMessage, type ServerResponse } from "node:http"
import { createServer as createTlsServer } from "node:https"
import type { AddressInfo } from "node:net"
import { Effect, Redacted } from "effect"
import { type Bucket, Buckets } from "#actors/share-protection/ports/buckets.ts"
import { bucketsS3, bucketsS3In } from "#adapters/share-protection/s3/buckets.ts"

export interface Asked {
  readonly method: string
  /** The received URL, with its query. */
  readonly url: string
  readonly host: string
  readonly headers: IncomingMessage["headers"]
}

export interface S3FakeOptions {
  readonly tls?: { readonly key: string; readonly cert: string }
  /** Replaces the response if it returns true. */
  readonly instead?: (request: Asked, response: ServerResponse) => boolean
}

export interface S3Fake {
  readonly bucket: Bucket
  readonly requests: ReadonlyArray<Asked>
}

export const secret_key = "secret-of-the-fake"

export const s3Error = (response: ServerResponse, status: number, code: string) => {
  response.writeHead(status, { "content-type": "application/xml" })
  response.end(`<Error><Code>${code}</Code><Message>never shown</Message></Error>`)
}

/** The fake on a free loopback port until the scope ends, and access to its bucket. */
export const s3Fake = (options: S3FakeOptions = {}) => {
  const requests: Array<Asked> = []
  const answer = fakeAnswers()
  const listener = (request: IncomingMessage, response: ServerResponse) => {
    const { method = "", url = "", headers } = request
    const one = { method, url, host: headers.host ?? "", headers }
    requests.push(one)
    if (options.instead?.(one, response)) return
    const parts: Array<Buffer> = []
    request.on("data", (part: Buffer) => parts.push(part))
    request.on("end", () => answer(one, Buffer.concat(parts), response))
  }
  const { tls } = options
  const listening = Effect.callback<ReturnType<typeof createServer>>((resume) => {
    const server = tls ? createTlsServer(tls, listener) : createServer(listener)
    server.listen(0, "127.0.0.1", () => resume(Effect.succeed(server)))
  })
  return Effect.acquireRelease(listening, (server) =>
    Effect.callback<void>((resume) => {
      server.close(() => resume(Effect.void))
      server.closeAllConnections()
    }),
  ).pipe(
    Effect.map((server): S3Fake => {
      // A server that listens on a port has an address of this type.
      const { port } = server.address() as AddressInfo
      const endpoint = `${tls ? "https" : "http"}://127.0.0.1:${port}`
      const keys = { access_key: Redacted.make("AK"), secret_key: Redacted.make(secret_key) }
      const place = { endpoint, bucket: "bucket", region: null, ca_cert: null } as const
      return { bucket: { ...place, addressing_mode: "path", ...keys }, requests }
    }),
  )
}

/** The production adapter; tests that are not about timeouts never wait. */
export const buckets = Effect.provide(Buckets, bucketsS3)
/** Limit for tests that wait; a timeout on a silent server takes far less. */
export const hasty_ms = 20_000
export const hasty = Effect.provide(
  Buckets,
  bucketsS3In({ connect_ms: 1_000, idle_ms: 300, total_ms: hasty_ms }),
)

/** The reason that a Shape B preflight fails. */
export const failing = (bucket: Bucket, port = buckets) =>
  Effect.flatMap(port, ({ preflight }) =>
    Effect.map(Effect.flip(preflight(bucket, { shape: "B" })), ({ detail }) => detail),
  )

export const reachFailure = (bucket: Bucket, port = buckets) =>
  Effect.flatMap(port, ({ reach }) => Effect.flip(reach(bucket)))

/** Responds to a query of the bucket's configuration. */
export const saying =
  (query: string, text: string) =>
  ({ url }: Asked, response: ServerResponse) => {
    if (!url.includes(`?${query}`)) return false
    response.end(text)
    return true
  }

interface Stored {
  readonly body: Buffer
  readonly version_id: string
  readonly lock: IncomingMessage["headers"]
}

const lock_headers = ["x-amz-object-lock-mode", "x-amz-object-lock-retain-until-date"]

const configurations: Readonly<Record<string, string>> = {
  versioning: "<VersioningConfiguration><Status>Enabled</Status></VersioningConfiguration>",
  "object-lock":
    "<ObjectLockConfiguration><ObjectLockEnabled>Enabled</ObjectLockEnabled>" +
    "</ObjectLockConfiguration>",
}

const fakeAnswers = () => {
  const objects = new Map<string, Stored>()
  return ({ method, url, headers }: Asked, body: Buffer, response: ServerResponse) => {
    const { pathname, searchParams } = new URL(url, "http://fake")
    const stored = objects.get(pathname)
    if (pathname === "/") return response.end("<ListAllMyBucketsResult/>")
    if (pathname === "/bucket" || pathname === "/bucket/") {
      const [requests = ""] = searchParams.keys()
      const found = configurations[requests] ?? "<ListBucketResult/>"
      return requests === "lifecycle"
        ? s3Error(response, 404, "NoSuchLifecycleConfiguration")
        : response.end(found)
    }
    if (method === "PUT") {
      const lock = Object.fromEntries(lock_headers.map((name) => [name, headers[name]]))
      const version_id = randomUUID()
      objects.set(pathname, { body, version_id, lock })
      return response.writeHead(200, { "x-amz-version-id": version_id }).end()
    }
    if (stored === undefined) return s3Error(response, 404, "NoSuchKey")
    if (method === "DELETE") {
      const is_locked = stored.lock["x-amz-object-lock-mode"] !== undefined
      if (is_locked && searchParams.has("versionId")) return s3Error(response, 403, "AccessDenied")
      return response.writeHead(204).end()
    }
    const lock = Object.entries(stored.lock).filter(([, value]) => value !== undefined)
    response.writeHead(200, Object.fromEntries(lock))
    return response.end(method === "HEAD" ? undefined : stored.body)
  }
}
