/** Serves an API behind the gateway on a free port, with callers invented for the test. */
import { connect } from "node:net"
import * as NodeHttpServer from "@effect/platform-node/NodeHttpServer"
import { Effect, Exit, Layer, Logger, Redacted, References, Scope } from "effect"
import { httpTransport } from "#adapters/http/transport.ts"
import type { Caller } from "#gateway/caller.ts"
import { openDoor } from "#gateway/door.ts"
import {
  type Authenticate,
  Identity,
  IdentityUnavailable,
  Unauthenticated,
} from "#gateway/identity.ts"
import { type RequestMetrics, requestMetrics } from "#gateway/metrics.ts"
import { mount, type Service } from "#gateway/routes.ts"
import { httpServer, type InternalHandler, type Listening } from "#http"
import type { Group, Values } from "#schemas/setting.ts"
import { isSetting } from "#schemas/setting.ts"
import { settings as declared, type Settings } from "#schemas/settings.ts"

const defaultsOf = (group: Group): Record<string, unknown> =>
  Object.fromEntries(
    Object.entries(group).map(([name, node]) => {
      if (!isSetting(node)) return [name, defaultsOf(node)]
      return [name, node.form === "secret" ? Redacted.make("") : node.initial]
    }),
  )

/** Some settings by section; the others have their defaults. */
export type Given = { readonly [Section in keyof Settings]?: Partial<Settings[Section]> }

/** The default settings on a free port of loopback, overridden by these. */
export const settingsWith = (given: Given = {}): Settings => {
  // Each name holds its declared initial value, which has the setting's own type.
  const all = defaultsOf(declared) as unknown as Values<typeof declared>
  const api = { ...all.api, bind_host: "127.0.0.1", bind_port: 0, ...given.api }
  const sections = Object.entries(given).map(([name, section]) => [
    name,
    Object.assign({}, Reflect.get(all, name), section),
  ])
  return { ...all, ...Object.fromEntries(sections), api }
}

const caller = (actor: string, scopes: ReadonlyArray<string>, roles: ReadonlyArray<string>) => ({
  actor,
  kind: "static" as const,
  scopes: new Set(scopes),
  roles: new Set(roles),
})

/** Callers by token. */
const callers: Readonly<Record<string, Caller>> = {
  reader: caller("reader", ["blobs:read"], []),
  writer: caller("writer", ["blobs:read", "blobs:write"], []),
  admin: caller("admin", [], ["admin"]),
  member: { ...caller("member", [], ["member"]), project_id: "p1", user_id: "u1" },
  stranger: { ...caller("stranger", [], ["reader"]), project_id: "p1", user_id: "u2" },
  owner: { ...caller("owner", [], ["svc_domain_owner"]), domain_id: "d1", user_id: "u3" },
}

/** Tokens that the identity accepts, although headers may not: the longest, and malformed ones. */
export const longest_token = "t".repeat(4096)
export const odd_tokens = ["", `${longest_token}t`, "mem ber", "mem\tber", "\u00e9", longest_token]

const authenticate: Authenticate = ({ token, certificate }) => {
  if (token === undefined) {
    if (certificate === undefined) return Effect.fail(new Unauthenticated({ reason: "missing" }))
    return Effect.succeed(caller(certificate.subjects.join(), ["blobs:read"], []))
  }
  const text = token()
  if (text === "outage") return Effect.fail(new IdentityUnavailable({ message: "no route" }))
  if (text === "expired") return Effect.fail(new Unauthenticated({ reason: "expired" }))
  const known = callers[text] ?? (odd_tokens.includes(text) ? callers.member : undefined)
  return known ? Effect.succeed(known) : Effect.fail(new Unauthenticated({ reason: "unknown" }))
}

export interface Served extends Listening {
  readonly fetch: (path: string, init?: RequestInit) => Promise<Response>
  /** Sends these bytes on a new connection and returns the response until its end. */
  readonly raw: (...parts: ReadonlyArray<string>) => Promise<string>
  /** The log lines, newest last. */
  readonly logged: ReadonlyArray<string>
  /** Number of requests that the gateway has not finished. */
  readonly inFlight: () => number
}

/** The platform services that a service's routes may need. */
type HttpServices = Layer.Success<typeof NodeHttpServer.layerHttpServices> | Scope.Scope

export interface Setup {
  readonly settings?: Given
  /** Called for each request, for reloadable settings. */
  readonly current?: () => Settings
  readonly requests?: RequestMetrics
  /** Replaces the invented callers. */
  readonly authenticate?: Authenticate
  /** The handler for requests from other nodes. */
  readonly internal?: InternalHandler
}

/** Serves these services until the scope closes. */
export const serveHttp = Effect.fnUntraced(function* (
  services: ReadonlyArray<Service<unknown, HttpServices>>,
  { settings: given = {}, current, requests = requestMetrics(), ...setup }: Setup = {},
) {
  const settings = settingsWith(given)
  const logged: Array<string> = []
  const logger = Logger.map(Logger.formatLogFmt, (line) => {
    logged.push(line)
  })
  const logging = Logger.layer([logger])
  const run = Effect.gen(function* () {
    const mounted = yield* Effect.forEach(services, (service) => mount(service))
    const door = yield* openDoor(mounted, current ?? (() => settings), requests)
    const listening = yield* httpServer(settings, door, { internal: setup.internal })
    return { listening, door }
  })
  const { listening, door } = yield* run.pipe(
    Effect.provide(
      Layer.mergeAll(
        httpTransport,
        logging,
        NodeHttpServer.layerHttpServices,
        Layer.succeed(Identity, { authenticate, ...setup }),
        Layer.succeed(References.MinimumLogLevel, "Info" as const),
      ),
    ),
  )
  const served: Served = {
    ...listening,
    logged,
    inFlight: door.inFlight,
    fetch: (path, init) => fetch(`${listening.url}${path}`, init),
    raw: (...parts) => talk(listening.port, parts),
  }
  return served
})

/** Idle time in milliseconds after which the client disconnects. */
const patience_ms = 5000

const talk = (port: number, parts: ReadonlyArray<string>) =>
  new Promise<string>((resolve, reject) => {
    const socket = connect(port, "127.0.0.1")
    const chunks: Array<Buffer> = []
    socket.setTimeout(patience_ms, () => socket.destroy())
    socket.on("data", (chunk) => chunks.push(chunk))
    socket.on("error", (error: NodeJS.ErrnoException) => {
      if (error.code !== "ECONNRESET" && error.code !== "EPIPE") reject(error)
    })
    socket.on("close", () => resolve(Buffer.concat(chunks).toString("latin1")))
    for (const part of parts) socket.write(part)
  })

export const as = (token: string) => ({ authorization: `Bearer ${token}` })

/** Serves until `stop`, for suites that share a server. */
export const startHttp = async (
  services: Parameters<typeof serveHttp>[0],
  setup?: Setup,
): Promise<Served & { readonly stop: () => Promise<void> }> => {
  const scope = Effect.runSync(Scope.make())
  const served = await Effect.runPromise(Scope.provide(serveHttp(services, setup), scope))
  return { ...served, stop: () => Effect.runPromise(Scope.close(scope, Exit.void)) }
}

/** Maximum wait in milliseconds for what is immediate on an idle machine. */
const until_ms_max = 10_000

/** Polls until the condition holds. */
export const until = async (so: () => boolean) => {
  const started = performance.now()
  while (!so()) {
    if (performance.now() - started > until_ms_max) throw new Error("It did not come to be so.")
    await new Promise((resolve) => setImmediate(resolve))
  }
}
