/**
 * A fake cloud with scripted responses, for faults that a real one cannot produce. Its successful
 * responses are copied from the real services.
 */
import { createServer, type IncomingMessage, type ServerResponse } from "node:http"
import type { AddressInfo } from "node:net"
import { Effect, Layer, Redacted } from "effect"
import { keystoneSession } from "#adapters/keystone/session.ts"
import type { Settings } from "#schemas/settings.ts"
import { given } from "../../settings-given.ts"

/** A received request. */
export interface Asked {
  readonly method: string
  readonly path: string
  readonly query: URLSearchParams
  readonly headers: IncomingMessage["headers"]
  readonly body: string
}

/** A response, or a connection fault. */
export type Said =
  | { readonly status: number; readonly body?: unknown; readonly headers?: Record<string, string> }
  | "drop"
  | "hang"

/** Responses by `METHOD /path`; undefined returns 404 as Manila and Keystone do. */
export type Answers = Record<string, (request: Asked) => Said>

export interface Fake {
  readonly url: string
  readonly requests: Array<Asked>
  readonly answers: Answers
  readonly settings: Settings
  /** How often it received this request. */
  readonly count: (method: string, path: string) => number
}

export const fake_password = "correct horse"

const catalogue = (url: string) =>
  [
    ["key-manager", "/barbican/v1"],
    ["sharev2", `/manila/v2/${"a".repeat(32)}`],
  ].flatMap(([type, path]) => [
    {
      type,
      endpoints: [
        { interface: "internal", region_id: "here", url: "http://127.0.0.1:1/internal" },
        { interface: "public", region_id: "elsewhere", url: "http://127.0.0.1:1/elsewhere" },
        { interface: "public", region_id: "here", url: `${url}${path}/` },
      ],
    },
  ])

/** A token of the service user as Keystone issues it. */
export const ownToken = (url: string, change: object = {}) => ({
  token: {
    expires_at: "2100-01-01T00:00:00.000000Z",
    user: { id: "svc-user", name: "svcprotect" },
    project: { id: "svc-project", name: "service" },
    roles: [{ name: "service" }, { name: "admin" }],
    catalog: catalogue(url),
    ...change,
  },
})

const respond = (message: Said, request: IncomingMessage, response: ServerResponse) => {
  if (message === "hang") return
  if (message === "drop") return request.socket.destroy()
  const { status, body = {}, headers = {} } = message
  const is_text = typeof body === "string" || Buffer.isBuffer(body)
  const type = is_text ? "text/html" : "application/json"
  response.writeHead(status, { "content-type": type, ...headers })
  response.end(is_text ? body : JSON.stringify(body))
}

/** A fake that runs until the scope closes and issues tokens by itself. */
export const fake = Effect.gen(function* () {
  const requests: Array<Asked> = []
  let tokens = 0
  const answers: Answers = {
    "POST /v3/auth/tokens": () => ({
      status: 201,
      headers: { "x-subject-token": `own-${++tokens}` },
      body: ownToken(url),
    }),
  }
  const server = createServer((request, response) => {
    const { pathname, searchParams } = new URL(request.url ?? "", "http://fake")
    let body = ""
    request.on("data", (part) => {
      body += part
    })
    request.on("end", () => {
      const method = request.method ?? ""
      const one = { method, path: pathname, query: searchParams, headers: request.headers, body }
      requests.push(one)
      const answer = answers[`${method} ${pathname}`]
      respond(answer?.(one) ?? { status: 404, body: { error: {} } }, request, response)
    })
  })
  yield* Effect.acquireRelease(
    Effect.callback<void>((resume) => {
      server.listen(0, "127.0.0.1", () => resume(Effect.void))
    }),
    () =>
      Effect.sync(() => {
        server.closeAllConnections()
        server.close()
      }),
  )
  // The server listens on TCP, so its address has a port.
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const settings = given({
    identity: { kind: "keystone" },
    keystone_authtoken: {
      auth_url: url,
      username: "svcprotect",
      region: "here",
      password: Redacted.make(fake_password),
    },
    manila: { mount: "local" },
  })
  const made: Fake = {
    url,
    requests,
    answers,
    settings,
    count: (method, path) =>
      requests.filter((one) => one.method === method && one.path === path).length,
  }
  return made
})

/** The service user's session with this fake. */
export const sessionOf = ({ settings }: Fake) => Layer.build(keystoneSession(settings))
