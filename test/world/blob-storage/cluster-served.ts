/** ClusterService behind the gateway, on an in-memory log that can be made unavailable. */
import { createHash, randomUUID } from "node:crypto"
import { assert, it } from "@effect/vitest"
import { Effect, Layer, type Scope } from "effect"
import { HttpRouter, HttpServer, HttpServerRequest, HttpServerResponse } from "effect/http"
import { HttpApiBuilder } from "effect/http-api"
import { LiveNodes } from "#actors/blob-storage/ports/live-nodes.ts"
import { host } from "#actors/host.ts"
import { BlobStorageApi } from "#gateway/blob-storage/apis/cluster.ts"
import { cluster } from "#gateway/blob-storage/cluster.ts"
import { openDoor } from "#gateway/door.ts"
import { Identity, Unauthenticated } from "#gateway/identity.ts"
import { mount } from "#gateway/routes.ts"
import { Transport } from "#gateway/transport.ts"
import { BlobStorageModel } from "#projections/blob-storage/blueprint.ts"
import { sqlite } from "#sqlite"
import { frailLog } from "../log/frail-log.ts"
import { temporaryFolder } from "../programs/nats.ts"
import { given } from "../settings-given.ts"

/** Tokens named after their scopes. */
const tokens: Readonly<Record<string, ReadonlyArray<string>>> = {
  admin: ["cluster:admin"],
  reader: ["blobs:read"],
  writer: ["blobs:write"],
}

const identity = Layer.succeed(
  Identity,
  Identity.of({
    authenticate: ({ token }) => {
      const text = token?.()
      const scopes = text === undefined ? undefined : tokens[text]
      if (text === undefined) return Effect.fail(new Unauthenticated({ reason: "missing" }))
      if (scopes === undefined) return Effect.fail(new Unauthenticated({ reason: "unknown" }))
      return Effect.succeed({
        actor: text,
        kind: "static",
        scopes: new Set(scopes),
        roles: new Set<string>(),
      } as const)
    },
  }),
)

const idle = { is_read: true, bytes: 0, received_bytes: 0, is_held_up: false, is_taken: true }

const transport = Layer.succeed(
  Transport,
  Transport.of({
    newId: randomUUID,
    idOf: (text) => createHash("sha256").update(text).digest("hex"),
    certificateOf: () => undefined,
    addressOf: () => "127.0.0.1",
    progressOf: () => idle,
    hasten: () => false,
  }),
)

const own = {
  node_id: "own",
  usage: Effect.succeed({ used_bytes: 2n ** 60n + 1n, blob_count: 3n }),
  compact: Effect.succeed({
    is_done: true,
    given_back_bytes: 2n ** 60n + 1n,
    remaining_bytes: 0n,
    disk_bytes: 5n,
    used_bytes: 4n,
  }),
}
const options = { cluster: "almanac", vnodes_per_node: 128, own }

const services = Layer.mergeAll(
  identity,
  transport,
  LiveNodes.memory,
  HttpServer.layerServices,
  Layer.mergeAll(
    host,
    BlobStorageModel.layer.pipe(Layer.provide(Layer.unwrap(Effect.map(temporaryFolder, sqlite)))),
  ).pipe(Layer.provideMerge(frailLog)),
)

/** The fields of a node that tests read in a response. */
export interface ShownNode {
  readonly [field: string]: unknown
  readonly ring_share?: number
  readonly pending_migrations?: number
  readonly last_heartbeat_at?: number
}

/** The fields that tests read in a response. */
export interface Body {
  readonly [field: string]: unknown
  readonly detail?: string
  readonly request_id?: string
  readonly nodes?: ReadonlyArray<ShownNode>
}

export interface Answer {
  readonly status: number
  readonly headers: Headers
  readonly text: string
  readonly body: Body
}

interface Ask {
  readonly token?: string | undefined
  readonly headers?: Record<string, string>
}

type Client = (method: string, path: string, body?: unknown, ask?: Ask) => Effect.Effect<Answer>

const opened = Effect.gen(function* () {
  const model = yield* BlobStorageModel
  const routes = HttpApiBuilder.layer(BlobStorageApi).pipe(Layer.provide(cluster(options)))
  const mounted = yield* mount({
    name: "blob-storage",
    api: BlobStorageApi,
    routes: HttpRouter.toHttpEffect(routes),
    waitFor: model.waitFor,
  })
  const door = yield* openDoor([mounted], () => given({}))
  const context = yield* Effect.context<never>()

  const ask: Client = Effect.fnUntraced(function* (
    method,
    path,
    body,
    { token = "admin", headers = {} } = {},
  ) {
    const text = typeof body === "string" ? body : JSON.stringify(body)
    const request = new Request(`http://node${path}`, {
      method,
      headers: {
        ...(token === "" ? {} : { authorization: `Bearer ${token}` }),
        ...(text === undefined
          ? {}
          : { "content-type": "application/json", "content-length": String(text.length) }),
        ...headers,
      },
      ...(text === undefined ? {} : { body: text }),
    })
    const response = yield* door.app.pipe(
      Effect.provideService(
        HttpServerRequest.HttpServerRequest,
        HttpServerRequest.fromWeb(request),
      ),
      Effect.provide(door.context),
      Effect.scoped,
      Effect.orDie,
    )
    const web = HttpServerResponse.toWeb(response, { context })
    const answered = yield* Effect.promise(() => web.text())
    // Tests check the fields that they read.
    const parsed = JSON.parse(answered) as Body
    return { status: web.status, headers: web.headers, text: answered, body: parsed }
  })
  return ask
})

type Services = Layer.Success<typeof services>

export const served = (
  name: string,
  body: (ask: Client) => Effect.Effect<void, unknown, Services | Scope.Scope>,
) => it.live(name, () => Effect.flatMap(opened, body).pipe(Effect.provide(services), Effect.scoped))

export const node = { node_id: "node-1", address: "10.0.0.1:9797", capacity_bytes: 1000 }
export const beat = { node_id: "node-1", used_bytes: 10, blob_count: 2, ring_version: 1 }

export const view = (more: object = {}) => ({
  ...node,
  state: "active",
  used_bytes: 0,
  blob_count: 0,
  ...more,
})

export const isEnvelope = ({ headers, body }: Answer, code: string, message: string) => {
  assert.equal(body.code, code)
  assert.equal(body.message, message)
  assert.isString(body.detail)
  assert.equal(body.request_id, headers.get("x-request-id"))
  assert.isNotEmpty(body.request_id)
}
