/** BlobService behind the gateway, on an engine that the test chooses. */
import * as NodeHttpServer from "@effect/platform-node/NodeHttpServer"
import { Effect, Layer, Scope } from "effect"
import { HttpRouter } from "effect/http"
import { HttpApiBuilder } from "effect/http-api"
import { type BlobEngine, Blobs } from "#actors/blob-storage/ports/engine.ts"
import { cursorsWith } from "#adapters/blob-storage/cursor-key.ts"
import { memoryEngine } from "#adapters/blob-storage/memory/engine.ts"
import { BlobApi, BlobListApi } from "#gateway/blob-storage/apis/blobs.ts"
import { blobs } from "#gateway/blob-storage/blobs.ts"
import { Cursors } from "#gateway/blob-storage/cursors.ts"
import { directBlobs } from "#gateway/blob-storage/direct/routes.ts"
import { as, type Served, type Setup, serveHttp, settingsWith } from "../http.ts"

export interface BlobSetup extends Setup {
  /** The engine of the API and of the direct routes; in memory by default. */
  readonly engine?: BlobEngine
  readonly active_nodes?: number
  /** This node's name in receipts. */
  readonly node_id?: string
  readonly cursor_key?: Uint8Array
}

/** Serves BlobService on a free port until the scope closes; returns it with its engine. */
export const serveBlobs = Effect.fnUntraced(function* ({
  engine = memoryEngine(),
  active_nodes = 1,
  node_id,
  cursor_key = new Uint8Array(32),
  ...setup
}: BlobSetup = {}) {
  const { blob, json } = settingsWith(setup.settings)
  const handlers = blobs.pipe(
    Layer.provide(Layer.succeed(Blobs, engine)),
    Layer.provide(Layer.succeed(Cursors, cursorsWith(cursor_key))),
  )
  const scope = yield* Effect.scope
  const routes = HttpRouter.toHttpEffect(
    HttpApiBuilder.layer(BlobListApi).pipe(Layer.provide(handlers)),
  ).pipe(Effect.provide(NodeHttpServer.layerHttpServices), Scope.provide(scope))
  const direct = Effect.succeed(
    directBlobs({
      engine,
      active_nodes: Effect.succeed(active_nodes),
      ...(node_id === undefined ? {} : { node_id }),
      int64: json.int64,
      json_digits_max: blob.json_body_bytes_max,
    }),
  )
  const service = { name: "blob-storage", api: BlobApi, routes, direct }
  const served = yield* serveHttp([service], setup)
  return { ...served, engine, call: caller(served) }
})
export type BlobService = Effect.Success<ReturnType<typeof serveBlobs>>

export interface Called {
  readonly status: number
  readonly headers: Headers
  readonly text: string
  readonly json: Json
}
/** The fields that tests read in a response. */
export interface Json {
  readonly [field: string]: unknown
  readonly code?: string
  readonly message?: string
  readonly detail?: string
  readonly id?: { readonly id: string }
  readonly meta?: Readonly<Record<string, unknown>>
  readonly data?: string
}

const parsed = (text: string): Json => {
  try {
    // Tests check the fields that they read.
    return JSON.parse(text) as Json
  } catch {
    return {}
  }
}

/** Sends one request as the writer and returns the response. */
const caller =
  ({ fetch }: Served) =>
  (method: string, path: string, init: RequestInit & { readonly token?: string } = {}) =>
    Effect.promise(async (): Promise<Called> => {
      const headers = new Headers({ ...as(init.token ?? "writer") })
      for (const [name, value] of new Headers(init.headers)) headers.set(name, value)
      const response = await fetch(path, { ...init, method, headers })
      const text = await response.text()
      return { status: response.status, headers: response.headers, text, json: parsed(text) }
    })

export const json_type = { "content-type": "application/json" }
export const lines_type = { "content-type": "application/x-ndjson" }
export const bytes_type = { "content-type": "application/octet-stream" }
export const accept_bytes = { accept: "application/octet-stream" }

export const base64 = (bytes: Uint8Array | string) => Buffer.from(bytes).toString("base64")

/** Converts an ID from a response to hex. */
export const hexOf = (id: { readonly id: string } | undefined) =>
  Buffer.from(id?.id ?? "", "base64").toString("hex")

/** Runs a test with its own service. */
export const withBlobs = <A, E>(
  setup: BlobSetup,
  body: (service: BlobService) => Effect.Effect<A, E, Scope.Scope>,
) => Effect.runPromise(Effect.scoped(Effect.flatMap(serveBlobs(setup), body)))
