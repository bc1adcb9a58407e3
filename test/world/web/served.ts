/** Serves the built pages and canned responses, under a policy as strict as the gateway's. */
import { createHash } from "node:crypto"
import { existsSync, readFileSync } from "node:fs"
import { createServer, type IncomingMessage, type ServerResponse } from "node:http"
import { extname, join } from "node:path"
import { pages } from "#schemas/system/page.ts"
import type { Bodies } from "./canned.ts"

const dist = join(import.meta.dirname, "../../..", "web", "dist")

const types: Readonly<Record<string, string>> = {
  ".html": "text/html; charset=utf-8",
  ".js": "text/javascript",
  ".css": "text/css",
  ".svg": "image/svg+xml",
}

/** The gateway's policy: scripts, styles and images only from files of the page's own origin. */
const policy =
  "default-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; " +
  "object-src 'none'"

export interface Served {
  readonly origin: string
  /** The responses from now on. */
  bodies: Bodies
  /** If set, every API response has this status. If 0, connections are cut. */
  failing: number | undefined
  /** If set, the API responds with 401 without this token. */
  token: string | undefined
  /** API responses since the last `clear`: "200 /api/dashboard". */
  readonly answered: string[]
  readonly close: () => Promise<void>
}

const api = (served: Served, request: IncomingMessage, response: ServerResponse, path: string) => {
  const say = (status: number, body = "", headers: Record<string, string> = {}) => {
    served.answered.push(`${status} ${path}`)
    response.writeHead(status, { "content-type": "application/json", ...headers }).end(body)
  }
  if (served.failing === 0) {
    served.answered.push(`0 ${path}`)
    request.socket.destroy()
    return
  }
  if (served.failing !== undefined) return say(served.failing, '{"detail":"Internal Server Error"}')
  if (served.token && request.headers.authorization !== `Bearer ${served.token}`) {
    return say(401, '{"detail":"Unauthorized"}')
  }
  const body = served.bodies.get(path)
  if (body === undefined) return say(404, '{"detail":"Unknown metric"}')
  const etag = `"${createHash("sha256").update(body).digest("hex").slice(0, 16)}"`
  if (request.headers["if-none-match"] === etag) return say(304, undefined, { etag })
  say(200, body, { etag, "cache-control": "no-cache" })
}

const htmls: Readonly<Record<string, string>> = Object.fromEntries(
  pages.map(({ path, file }) => [path, file]),
)

const page = (response: ServerResponse, path: string) => {
  const file = join(dist, htmls[path] ?? path)
  if (!existsSync(file)) return response.writeHead(404).end()
  response
    .writeHead(200, {
      "content-type": types[extname(file)] ?? "application/octet-stream",
      "content-security-policy": policy,
      "x-content-type-options": "nosniff",
    })
    .end(readFileSync(file))
}

/** Responds to requests that are not for a page. */
export type Answers = (request: IncomingMessage, response: ServerResponse, url: URL) => void

/** Serves pages on a free port of loopback; `answers` serves the API and its description. */
export const listen = async (answers: Answers) => {
  const server = createServer((request, response) => {
    const url = new URL(request.url ?? "/", "http://localhost")
    if (/^\/(api|predict|v1|readyz|openapi\.json)(\/|$)/.test(url.pathname))
      answers(request, response, url)
    else page(response, url.pathname)
  })
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
  const address = server.address()
  const port = typeof address === "object" && address !== null ? address.port : 0
  const close = () =>
    new Promise<void>((resolve) => {
      server.close(() => resolve())
      server.closeAllConnections()
    })
  return { origin: `http://127.0.0.1:${port}`, close }
}

/** Serves the dashboard until closed. */
export const serve = async (bodies: Bodies): Promise<Served> => {
  const listening = await listen((request, response, { pathname }) =>
    api(served, request, response, pathname),
  )
  const served: Served = {
    ...listening,
    bodies,
    answered: [],
    failing: undefined,
    token: undefined,
  }
  return served
}
