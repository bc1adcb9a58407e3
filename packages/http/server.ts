/** The HTTP listener, with TLS if it is configured. */
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
import { watchFiles } from "#files"
import { work_ms } from "#processes"
import type { ErrorResponse, Handler, InternalHandler, ListenerSettings } from "./handler.ts"
import { intercept, isBelow } from "./intercept.ts"
import { limitConnections } from "./limits/connection-limit.ts"
import { disconnectStalled } from "./limits/stalled-clients.ts"
import { requireFraming } from "./refusals/request-framing.ts"

/** Maximum size of the request line and all headers. The handler allows half of it for the URL. */
const header_bytes_max = 16 * 1024
/** Timeout for the head of a request: any client can send 16 KiB within it. */
const headers_timeout_ms = 10_000
/** Longer than the usual idle timeouts of proxies, so that a proxy closes its connection first. */
const keep_alive_ms = 75_000
/** Interval between checks of the head timeout. */
const checking_interval_ms = 1000
/** Interval at which idle connections are closed during shutdown. */
const closing_interval_ms = 50
const ms_per_s = 1000
const stop_signals = ["SIGTERM", "SIGINT"] as const

/** Cannot listen on the address, or cannot use a file of `[tls]`. */
export class ListenFailure extends Schema.TaggedError<ListenFailure>()("ListenFailure", {
  message: Schema.String,
}) {}

export interface Listening {
  readonly port: number
  /** The URL for clients on this machine, such as `http://127.0.0.1:9797`. */
  readonly url: string
  /**
   * Serves for this many more seconds, and closes each connection after its next response, until
   * load balancers have noticed the shutdown. A second signal ends this early.
   */
  readonly drain: (seconds: number) => Effect.Effect<void>
  /** When the current certificate expires, in Unix seconds; undefined without TLS. */
  readonly certificateEnds: () => number | undefined
}

const options: ServerOptions = {
  headersTimeout: headers_timeout_ms,
  // The handler limits bodies by the time since their last byte: a stream may take hours.
  requestTimeout: 0,
  keepAliveTimeout: keep_alive_ms,
  maxHeaderSize: header_bytes_max,
  connectionsCheckingInterval: checking_interval_ms,
  // `requireFraming` rejects such requests with an envelope.
  requireHostHeader: false,
}

/** A TLS handshake has the same timeout as a head. */
const tls_options = { handshakeTimeout: headers_timeout_ms, minVersion: "TLSv1.2" } as const

/** The configured files of `[tls]`. */
export const tlsFiles = ({ cert, key, client_ca }: ListenerSettings["tls"]) =>
  [cert, key, client_ca].filter((path) => path !== "")

const readPem = (path: string, name: string) =>
  Effect.tryPromise({
    try: () => readFile(path),
    catch: () => new ListenFailure({ message: `tls.${name}: cannot read ${path}` }),
  })

const hasPeerCertificate = (socket: TLSSocket) =>
  Object.keys(socket.getPeerCertificate()).length > 0

const key_mismatch = "the key is not that of the certificate"

/** Reads the files of `[tls]`. Fails with ListenFailure if they cannot be used together. */
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
      const certificate = new X509Certificate(secure.cert)
      // OpenSSL accepts a key of another type, such as RSA for EC, and then fails each handshake.
      if (!certificate.checkPrivateKey(createPrivateKey(secure.key))) throw new Error(key_mismatch)
      return { secure, ends: Date.parse(certificate.validTo) / ms_per_s }
    },
    catch: (cause) => new ListenFailure({ message: `tls: ${String(cause)}` }),
  })
})

/**
 * With `client_ca`, clients may present a certificate, which one of these authorities must have
 * signed. Changed files apply to new connections only.
 */
const tlsServer = Effect.fnUntraced(function* (tls: ListenerSettings["tls"]) {
  const has_ca = tls.client_ca !== ""
  const whenChanged = yield* watchFiles(tlsFiles(tls))
  let current = yield* readTls(tls)
  const mutual = has_ca ? { requestCert: true, rejectUnauthorized: false } : {}
  const server = createTlsServer({ ...options, ...current.secure, ...mutual })
  const reload = Effect.gen(function* () {
    current = yield* readTls(tls)
    server.setSecureContext(current.secure)
    yield* Effect.logInfo(`The files of [tls] were reloaded: ${tls.cert} is served.`)
  })
  yield* whenChanged(
    Effect.catch(reload, ({ message }) =>
      Effect.logError(`${message}. The previous certificate is still served.`),
    ),
  )
  // A failed handshake leaves no way to respond, and Node leaves the connection open.
  server.on("tlsClientError", (_, socket) => socket.destroy())
  server.on("secureConnection", (socket) => {
    if (has_ca && !socket.authorized && hasPeerCertificate(socket)) socket.destroy()
  })
  return { server, ends: () => current.ends }
})

const parser_errors: Readonly<Record<string, readonly [number, string]>> = {
  HPE_HEADER_OVERFLOW: [431, `The headers exceed ${header_bytes_max} bytes in total.`],
  ERR_HTTP_REQUEST_TIMEOUT: [408, "The request was sent too slowly."],
  HPE_INVALID_URL: [400, "The URL has a character that must be percent-encoded, as UTF-8."],
  HPE_INVALID_HEADER_TOKEN: [400, "A header is malformed: it must be a name, a colon and text."],
}
const bad_request = [400, "The request is not HTTP."] as const

/** Remedies for errors of `listen`. */
const remedies: Readonly<Record<string, string>> = {
  EADDRINUSE:
    "another program uses it. Stop that program, or set api.bind_port (0 picks a free port)",
  EADDRNOTAVAIL: "it is not an address of this machine. Set api.bind_host",
  ENOTFOUND: "the host name cannot be resolved. Set api.bind_host",
  EACCES: "this user may not use the port. Set api.bind_port to 1024 or above",
}

const listenErrorText = (cause: unknown) => {
  const code = cause instanceof Error && "code" in cause ? String(cause.code) : ""
  const remedy = remedies[code]
  return remedy === undefined ? String(cause) : `${remedy} (${code})`
}

/** An error of Node's parser; `rawPacket` is the chunk in which it occurred. */
type Malformed = Error & { readonly code?: string; readonly rawPacket?: Buffer }

/** Also matches a truncated request line, whose URL is too long. */
const request_line = /^([A-Z]+) (\/\S*)(?: HTTP\/1\.[01]\r\n|$)/

/**
 * The response to malformed HTTP. If the head did not arrive in one chunk, its path is unknown, and
 * the response has the envelope of unknown paths.
 */
const malformedResponse = (error: Malformed, handler: Handler): ErrorResponse => {
  const [status, detail] = parser_errors[error.code ?? ""] ?? bad_request
  const head = error.rawPacket?.toString("latin1", 0, header_bytes_max) ?? ""
  const [, method, url] = request_line.exec(head) ?? []
  return handler.errorResponse(method ?? "", url ?? "/", { status, detail })
}

const serialize = ({ status, request_id, body }: ErrorResponse) => {
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

/** Responds to malformed HTTP, unless a response on this connection has begun. */
const answerMalformed = (server: Server, handler: Handler) => {
  const exchanges = new WeakMap<Duplex, Parameters<RequestListener>>()
  server.on("request", (request, response) => exchanges.set(request.socket, [request, response]))
  server.on("clientError", (error: Malformed, socket: Socket) => {
    const [request, response] = exchanges.get(socket) ?? []
    const is_answering = response?.headersSent === true && !response.writableFinished
    if (!socket.writable || is_answering || error.code === "ECONNRESET") socket.destroy()
    else if (request?.complete === false) {
      const broken = handler.errorResponse(request.method ?? "", request.url ?? "/")
      socket.end(serialize(broken), () => socket.destroy())
    } else socket.end(serialize(malformedResponse(error, handler)))
  })
}

/** Ignores unknown expectations, because Node's own 417 has no envelope. */
const ignoreExpectations = (server: Server) => {
  server.on("checkExpectation", (request, response) => server.emit("request", request, response))
}

/** Connections without any request so far, which Node does not count as idle. */
const unusedSockets = (server: Server, is_tls: boolean) => {
  const unused = new Set<Socket>()
  server.on(is_tls ? "secureConnection" : "connection", (socket: Socket) => {
    unused.add(socket)
    socket.once("close", () => unused.delete(socket))
  })
  server.on("request", ({ socket }) => unused.delete(socket))
  return unused
}

/** Passes requests to the direct routes first, and the others to Effect's listener. */
const routeDirect = (server: Server, { direct }: Handler) =>
  intercept(server, (next) => (request, response) => {
    direct(request, response, () => next(request, response))
  })

type OnUpgrade = InternalHandler["upgrade"]

/** Passes requests between nodes to their handler, and all others to the current listener. */
const routeInternal = (server: Server, internal: InternalHandler | undefined) => {
  // Only upgrade listeners were added for this event.
  const next_upgrade = server.listeners("upgrade").at(-1) as OnUpgrade | undefined
  if (internal === undefined || next_upgrade === undefined) return
  intercept(
    server,
    (next) => (request, response) =>
      isBelow(internal.prefix, request.url)
        ? internal.request(request, response)
        : next(request, response),
  )
  server.off("upgrade", next_upgrade)
  server.on("upgrade", (request, socket, head) =>
    isBelow(internal.prefix, request.url)
      ? internal.upgrade(request, socket, head)
      : next_upgrade(request, socket, head),
  )
}

/** Resumes when a second signal requests an immediate stop. */
const secondSignal = Effect.callback<void>((resume) => {
  const onSignal = () => resume(Effect.void)
  for (const signal of stop_signals) process.once(signal, onSignal)
  return Effect.sync(() => {
    for (const signal of stop_signals) process.off(signal, onSignal)
  })
})

/** Closes each connection with its next response, so that no request is cut off. */
const makeDrain = (server: Server) => (seconds: number) =>
  Effect.gen(function* () {
    if (seconds === 0) return
    server.prependListener("request", (_, response) => {
      response.shouldKeepAlive = false
    })
    yield* Effect.logInfo(
      `Stopping: still serving requests for ${seconds} s. A second signal stops immediately.`,
    )
    yield* Effect.raceFirst(Effect.sleep(Duration.seconds(seconds)), secondSignal)
  })

/** The URL of `host` for clients on this machine. */
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
        new ListenFailure({
          message: `cannot listen on ${host}:${port}: ${listenErrorText(cause)}`,
        }),
    ),
  )

export interface HttpServerOptions {
  readonly internal?: InternalHandler | undefined
}

/**
 * Listens until the scope closes. Then it accepts no more connections, closes event streams and
 * links of other nodes, gives requests in flight 8 s, and closes the remaining connections.
 */
export const httpServer = Effect.fnUntraced(function* (
  { api, tls }: ListenerSettings,
  handler: Handler,
  { internal }: HttpServerOptions = {},
) {
  const is_tls = tls.cert !== ""
  const tls_server = is_tls ? yield* tlsServer(tls) : undefined
  const server: Server = tls_server?.server ?? createServer(options)
  answerMalformed(server, handler)
  ignoreExpectations(server)
  disconnectStalled(server, is_tls, api.request_timeout_seconds)
  const unused = unusedSockets(server, is_tls)
  const { serve } = yield* listen(server, api)
  let sweep_timer: ReturnType<typeof setInterval> | undefined
  yield* Effect.addFinalizer(() =>
    Effect.sync(() => {
      clearInterval(sweep_timer)
      server.closeAllConnections()
    }),
  )
  const context = Context.add(handler.context, Scope.Scope, yield* Effect.scope)
  yield* Effect.setContext(serve(handler.app), context)
  routeDirect(server, handler)
  routeInternal(server, internal)
  limitConnections(server, handler, api, { is_tls, internal })
  requireFraming(server, handler)
  // Runs first when the scope closes, before the server waits for requests in flight.
  yield* Effect.addFinalizer(() =>
    Effect.andThen(
      handler.close,
      Effect.sync(() => {
        internal?.close()
        sweep_timer = setInterval(() => {
          server.closeIdleConnections()
          for (const socket of unused) if (socket.bytesRead === 0) socket.destroy()
        }, closing_interval_ms)
      }),
    ),
  )
  // A server that listens on a port has an AddressInfo.
  const { port } = server.address() as AddressInfo
  const listening: Listening = {
    port,
    url: urlOf(is_tls ? "https" : "http", api.bind_host, port),
    drain: makeDrain(server),
    certificateEnds: () => tls_server?.ends(),
  }
  return listening
})
