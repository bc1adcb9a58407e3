/** The listener: Node's HTTP server before the front door, with TLS where the settings say so. */
import { createPrivateKey, X509Certificate } from "node:crypto"
import { readFile } from "node:fs/promises"
import {
  createServer,
  type RequestListener,
  type Server,
  type ServerOptions,
  STATUS_CODES,
} from "node:http"
import { createServer as createTlsServer } from "node:https"
import type { AddressInfo, Socket } from "node:net"
import type { Duplex } from "node:stream"
import { createSecureContext, type TLSSocket } from "node:tls"
import * as NodeHttpServer from "@effect/platform-node/NodeHttpServer"
import { Context, Duration, Effect, Schema, Scope } from "effect"
import { watched } from "#files"
import { work_ms } from "#processes"
import type { Broken, Handler, InternalHandler, ListenerSettings } from "./handler.ts"
import { limitConnections } from "./limits/connection-limit.ts"
import { cutUnread } from "./limits/unread-answer.ts"
import { requireFraming } from "./refusals/request-framing.ts"
import { inFront, isBelow } from "./request-front.ts"

/** All headers and the request line together; the front door allows half of it for the URL. */
const header_bytes_max = 16 * 1024
/** Slow heads are cut off: 16 KiB take no client ten seconds. */
const headers_timeout_ms = 10_000
/** Longer than the usual idle times of proxies, which must be the first to hang up. */
const keep_alive_ms = 75_000
/** How often slow heads are looked for. */
const checking_interval_ms = 1000
/** How often connections that have become idle are closed while the server stops. */
const closing_interval_ms = 50
const ms_per_s = 1000
const stop_signals = ["SIGTERM", "SIGINT"] as const

/** The address cannot be listened on, or a file of `[tls]` is not usable. */
export class ListenFailure extends Schema.TaggedError<ListenFailure>()("ListenFailure", {
  message: Schema.String,
}) {}

export interface Listening {
  readonly port: number
  /** `http://127.0.0.1:9797` for example: how this machine reaches it. */
  readonly url: string
  /**
   * Answers for so many seconds more, each connection's next request as its last: for whoever
   * balances the load, and has yet to see that this process ends. Another signal ends that.
   */
  readonly drain: (seconds: number) => Effect.Effect<void>
  /** When the certificate that is served runs out, in Unix time; undefined without TLS. */
  readonly certificateEnds: () => number | undefined
}

const options: ServerOptions = {
  headersTimeout: headers_timeout_ms,
  // Bodies have deadlines of their own, counted from the last byte: a stream may take hours.
  requestTimeout: 0,
  keepAliveTimeout: keep_alive_ms,
  maxHeaderSize: header_bytes_max,
  connectionsCheckingInterval: checking_interval_ms,
  // Such a request is answered in an envelope (`requireFraming`).
  requireHostHeader: false,
}

/** Who does not shake hands holds a connection no longer than who sends no head. */
const tls_options = { handshakeTimeout: headers_timeout_ms, minVersion: "TLSv1.2" } as const

/** The files of `[tls]` that are given. */
export const tlsFiles = ({ cert, key, client_ca }: ListenerSettings["tls"]) =>
  [cert, key, client_ca].filter((path) => path !== "")

const readPem = (path: string, name: string) =>
  Effect.tryPromise({
    try: () => readFile(path),
    catch: () => new ListenFailure({ message: `tls.${name}: cannot read ${path}` }),
  })

const isShown = (socket: TLSSocket) => Object.keys(socket.getPeerCertificate()).length > 0

const unfit = "the key is not that of the certificate"

/** What the files of `[tls]` hold now, which fit each other; ListenFailure otherwise. */
const readTls = Effect.fnUntraced(function* ({ cert, key, client_ca }: ListenerSettings["tls"]) {
  const secure = {
    ...tls_options,
    cert: yield* readPem(cert, "cert"),
    key: yield* readPem(key, "key"),
    ...(client_ca !== "" && { ca: yield* readPem(client_ca, "client_ca") }),
  }
  return yield* Effect.try({
    try: () => {
      createSecureContext(secure)
      const shown = new X509Certificate(secure.cert)
      // OpenSSL itself takes a key of another kind, as RSA beside EC, and then shakes no hand.
      if (!shown.checkPrivateKey(createPrivateKey(secure.key))) throw new Error(unfit)
      return { secure, ends: Date.parse(shown.validTo) / ms_per_s }
    },
    catch: (cause) => new ListenFailure({ message: `tls: ${String(cause)}` }),
  })
})

/**
 * With `client_ca` a client may show a certificate, but none that others have signed. Files that
 * are exchanged are those of connections from then on; the others keep what they have.
 */
const tlsServer = Effect.fnUntraced(function* (tls: ListenerSettings["tls"]) {
  const has_ca = tls.client_ca !== ""
  const whenChanged = yield* watched(tlsFiles(tls))
  let served = yield* readTls(tls)
  const mutual = has_ca ? { requestCert: true, rejectUnauthorized: false } : {}
  const server = createTlsServer({ ...options, ...served.secure, ...mutual })
  const again = Effect.gen(function* () {
    served = yield* readTls(tls)
    server.setSecureContext(served.secure)
    yield* Effect.logInfo(`The files of [tls] were read again: ${tls.cert} is served.`)
  })
  yield* whenChanged(
    Effect.catch(again, ({ message }) =>
      Effect.logError(`${message}. What was read before is still served.`),
    ),
  )
  // Nobody can be answered without a handshake, and Node itself leaves such a connection open.
  server.on("tlsClientError", (_, socket) => socket.destroy())
  server.on("secureConnection", (socket) => {
    if (has_ca && !socket.authorized && isShown(socket)) socket.destroy()
  })
  return { server, ends: () => served.ends }
})

const refusals: Readonly<Record<string, readonly [number, string]>> = {
  HPE_HEADER_OVERFLOW: [431, `The headers are larger than ${header_bytes_max} bytes in all.`],
  ERR_HTTP_REQUEST_TIMEOUT: [408, "The request came too slowly."],
  HPE_INVALID_URL: [400, "The URL has a character that must be percent-encoded, as UTF-8."],
  HPE_INVALID_HEADER_TOKEN: [400, "A header is malformed: it is a name, a colon and text."],
}
const bad_request = [400, "This is not HTTP."] as const

/** What to do where an address cannot be listened on. */
const remedies: Readonly<Record<string, string>> = {
  EADDRINUSE: "another program does. Stop it, or set api.bind_port (0 picks a free port)",
  EADDRNOTAVAIL: "it is no address of this machine. Set api.bind_host",
  ENOTFOUND: "no such host is known. Set api.bind_host",
  EACCES: "it is not allowed to this user. Set api.bind_port to 1024 or above",
}

const unheard = (cause: unknown) => {
  const code = cause instanceof Error && "code" in cause ? String(cause.code) : ""
  const remedy = remedies[code]
  return remedy === undefined ? String(cause) : `${remedy} (${code})`
}

/** What Node says of what its parser refused; `rawPacket` is the read in which it saw that. */
type Malformed = Error & { readonly code?: string; readonly rawPacket?: Buffer }

/** Or as much of it as there is room for, where the URL alone is too large. */
const request_line = /^([A-Z]+) (\/\S*)(?: HTTP\/1\.[01]\r\n|$)/

/**
 * The answer to what is not HTTP. Its path is known where the head came in one read; where it is
 * not, the answer has the envelope of unknown paths.
 */
const refused = (error: Malformed, handler: Handler): Broken => {
  const [status, detail] = refusals[error.code ?? ""] ?? bad_request
  const head = error.rawPacket?.toString("latin1", 0, header_bytes_max) ?? ""
  const [, method, url] = request_line.exec(head) ?? []
  return handler.broken(method ?? "", url ?? "/", { status, detail })
}

const written = ({ status, request_id, body }: Broken) => {
  const text = JSON.stringify(body)
  return [
    `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? "Error"}`,
    "Connection: close",
    "Content-Type: application/json",
    "Cache-Control: no-store",
    `Content-Length: ${Buffer.byteLength(text)}`,
    `X-Request-Id: ${request_id}`,
    "",
    text,
  ].join("\r\n")
}

/** Answers malformed HTTP, unless an answer is on its way on this connection already. */
const answerMalformed = (server: Server, handler: Handler) => {
  const exchanges = new WeakMap<Duplex, Parameters<RequestListener>>()
  server.on("request", (request, response) => exchanges.set(request.socket, [request, response]))
  server.on("clientError", (error: Malformed, socket: Socket) => {
    const [request, response] = exchanges.get(socket) ?? []
    const is_answering = response?.headersSent === true && !response.writableFinished
    if (!socket.writable || is_answering || error.code === "ECONNRESET") socket.destroy()
    else if (request?.complete === false) {
      const broken = handler.broken(request.method ?? "", request.url ?? "/")
      socket.end(written(broken), () => socket.destroy())
    } else socket.end(written(refused(error, handler)))
  })
}

/** Answers what expects something unheard of as if it did not: Node's own 417 has no envelope. */
const overlookExpectations = (server: Server) => {
  server.on("checkExpectation", (request, response) => server.emit("request", request, response))
}

/** Connections that never sent a request, which no server of Node's counts as idle. */
const silentSockets = (server: Server, is_tls: boolean) => {
  const silent = new Set<Socket>()
  server.on(is_tls ? "secureConnection" : "connection", (socket: Socket) => {
    silent.add(socket)
    socket.once("close", () => silent.delete(socket))
  })
  server.on("request", ({ socket }) => silent.delete(socket))
  return silent
}

/** Shows requests to the direct routes before Effect's listener, which serves all others. */
const directFirst = (server: Server, { direct }: Handler) =>
  inFront(server, (plain) => (request, response) => {
    direct(request, response, () => plain(request, response))
  })

type OnUpgrade = InternalHandler["upgrade"]

/** Shows to this door what is for nodes only, before whoever took it until now: all else is his. */
const internalFirst = (server: Server, internal: InternalHandler | undefined) => {
  // Only listeners of this event were added to it.
  const plain_upgrade = server.listeners("upgrade").at(-1) as OnUpgrade | undefined
  if (internal === undefined || plain_upgrade === undefined) return
  inFront(
    server,
    (plain) => (request, response) =>
      isBelow(internal.prefix, request.url)
        ? internal.request(request, response)
        : plain(request, response),
  )
  server.off("upgrade", plain_upgrade)
  server.on("upgrade", (request, socket, head) =>
    isBelow(internal.prefix, request.url)
      ? internal.upgrade(request, socket, head)
      : plain_upgrade(request, socket, head),
  )
}

/** Whoever tells the process to stop once more waits for nobody. */
const toldAgain = Effect.callback<void>((resume) => {
  const heard = () => resume(Effect.void)
  for (const signal of stop_signals) process.once(signal, heard)
  return Effect.sync(() => {
    for (const signal of stop_signals) process.off(signal, heard)
  })
})

/** Says with each answer that its connection ends: none is cut off under a client that asks. */
const drained = (server: Server) => (seconds: number) =>
  Effect.gen(function* () {
    if (seconds === 0) return
    server.prependListener("request", (_, response) => {
      response.shouldKeepAlive = false
    })
    yield* Effect.logInfo(`Answering for ${seconds} s more; told to stop again, it stops now.`)
    yield* Effect.raceFirst(Effect.sleep(Duration.seconds(seconds)), toldAgain)
  })

/** How this machine reaches what listens on `host`. */
const urlOf = (scheme: string, host: string, port: number) => {
  const any = host === "0.0.0.0" || host === "::"
  const name = any ? "127.0.0.1" : host
  return `${scheme}://${name.includes(":") ? `[${name}]` : name}:${port}`
}

const listen = (server: Server, { bind_host: host, bind_port: port }: ListenerSettings["api"]) =>
  NodeHttpServer.make(() => server, {
    host,
    port,
    gracefulShutdownTimeout: Duration.millis(work_ms),
  }).pipe(
    Effect.mapError(
      ({ cause }) =>
        new ListenFailure({ message: `cannot listen on ${host}:${port}: ${unheard(cause)}` }),
    ),
  )

export interface Beside {
  readonly internal?: InternalHandler | undefined
}

/**
 * Listens until the scope closes: then no connection is taken any more, event streams and the links
 * of other nodes end, requests in flight get 8 s, and what is left is cut off.
 */
export const httpServer = Effect.fnUntraced(function* (
  { api, tls }: ListenerSettings,
  handler: Handler,
  { internal }: Beside = {},
) {
  const is_tls = tls.cert !== ""
  const secured = is_tls ? yield* tlsServer(tls) : undefined
  const server: Server = secured?.server ?? createServer(options)
  answerMalformed(server, handler)
  overlookExpectations(server)
  cutUnread(server, is_tls, api.request_timeout_seconds)
  const silent = silentSockets(server, is_tls)
  const { serve } = yield* listen(server, api)
  let sweeping: ReturnType<typeof setInterval> | undefined
  yield* Effect.addFinalizer(() =>
    Effect.sync(() => {
      clearInterval(sweeping)
      server.closeAllConnections()
    }),
  )
  const around = Context.add(handler.context, Scope.Scope, yield* Effect.scope)
  yield* Effect.setContext(serve(handler.app), around)
  directFirst(server, handler)
  internalFirst(server, internal)
  limitConnections(server, handler, api, { is_tls, internal })
  requireFraming(server, handler)
  // Runs first when the scope closes, before the server waits for what is in flight.
  yield* Effect.addFinalizer(() =>
    Effect.andThen(
      handler.close,
      Effect.sync(() => {
        internal?.close()
        sweeping = setInterval(() => {
          server.closeIdleConnections()
          for (const socket of silent) if (socket.bytesRead === 0) socket.destroy()
        }, closing_interval_ms)
      }),
    ),
  )
  // A server that listens on a port has an address of this form.
  const { port } = server.address() as AddressInfo
  const listening: Listening = {
    port,
    url: urlOf(is_tls ? "https" : "http", api.bind_host, port),
    drain: drained(server),
    certificateEnds: () => secured?.ends(),
  }
  return listening
})
