/** A real HTTP server with scripted responses, and a client session with it. */
import { createServer, type IncomingMessage, type ServerResponse } from "node:http"
import type { AddressInfo } from "node:net"
import type { Access } from "#cli/client/access.ts"
import { isFailure } from "#cli/client/failure.ts"
import { httpOf } from "#cli/client/http.ts"
import type { Screen } from "#cli/client/screen.ts"
import type { Output, Session } from "#cli/client/session.ts"

export interface Heard {
  readonly method: string
  readonly path: string
  readonly headers: IncomingMessage["headers"]
  readonly body: Buffer
}

export type Script = (heard: Heard, answer: ServerResponse, nth: number) => void

/** Responds as the script says, request by request, until closed. */
export const scripted = async (script: Script) => {
  const heard: Array<Heard> = []
  const server = createServer((request, answer) => {
    const parts: Array<Buffer> = []
    request.on("data", (part: Buffer) => parts.push(part))
    request.on("end", () => {
      const { method = "", url: path = "", headers } = request
      const one = { method, path, headers, body: Buffer.concat(parts) }
      heard.push(one)
      script(one, answer, heard.length)
    })
  })
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
  // The server listens on TCP.
  const { port } = server.address() as AddressInfo
  const close = () => {
    server.closeAllConnections()
    return new Promise<void>((resolve) => server.close(() => resolve()))
  }
  return { url: `http://127.0.0.1:${port}`, heard, close }
}

/** Serves the script while `work` runs. */
export const withServer = async <A>(
  script: Script,
  work: (at: Awaited<ReturnType<typeof scripted>>) => Promise<A>,
) => {
  const server = await scripted(script)
  try {
    return await work(server)
  } finally {
    await server.close()
  }
}

export const json = (answer: ServerResponse, status: number, body: unknown, headers = {}) =>
  answer
    .writeHead(status, { "content-type": "application/json", ...headers })
    .end(JSON.stringify(body))

/** A screen that records its output. */
export const kept = (columns?: number, err_columns?: number, has_colours = false) => {
  const written = { out: "", err: "" }
  const screen: Screen = {
    drained: async () => undefined,
    columns,
    is_terminal: columns !== undefined,
    err_columns,
    has_colours,
    out: (text) => {
      written.out += text
    },
    err: (text) => {
      written.err += text
    },
  }
  return { screen, written }
}

const plain: Output = { json: false, fields: undefined, quiet: false }

/** A session with the server at `url`, authenticated by a token. */
export const sessionWith = (url: string, output: Partial<Output> = {}, columns?: number) => {
  const stopping = new AbortController()
  const access: Access = {
    url,
    tls: {},
    sign_in: "sign in",
    start: "start it",
    headers: async () => ({ authorization: "Bearer t" }),
  }
  const { screen, written } = kept(columns, columns)
  const session: Session = {
    http: httpOf(access),
    screen,
    output: { ...plain, ...output },
    signal: stopping.signal,
  }
  return { session, written, stop: () => stopping.abort() }
}

/** The outcome: the error kind and message, or `ok`. */
export const endingOf = async (work: Promise<unknown>) => {
  try {
    await work
    return { ending: "ok", message: "" }
  } catch (cause) {
    if (!isFailure(cause)) throw cause
    return { ending: cause.ending, message: cause.message }
  }
}
