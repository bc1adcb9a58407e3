/** A service with every kind of endpoint under any path, for tests of the gateway. */
import { Context, Effect, Layer, Schema, Stream } from "effect"
import { HttpServerResponse } from "effect/http"
import {
  HttpApi,
  HttpApiBuilder,
  HttpApiEndpoint,
  HttpApiGroup,
  HttpApiSchema,
} from "effect/http-api"
import { Needs } from "#gateway/access.ts"
import { jsonBody } from "#gateway/json.ts"
import { Streamed } from "#gateway/limits.ts"
import { RequestContext } from "#gateway/request-context.ts"
import { appOf } from "#gateway/routes.ts"
import { Behind } from "#projections/waiters.ts"
import { BlobIdFromText } from "#schemas/blob-storage/blob.ts"
import { NodeUnknown, NotFound, rejections } from "#schemas/blob-storage/rejection.ts"

const Seen = Schema.Struct({
  actor: Schema.String,
  request_id: Schema.String,
  correlation_id: Schema.String,
  command_id: Schema.String,
})
const Echo = Schema.Struct({ text: Schema.String, n: Schema.Int })

const seen = Effect.map(RequestContext, ({ caller, request_id, correlation_id, command_id }) => ({
  actor: caller.actor,
  request_id,
  correlation_id,
  command_id,
}))

/** A probe's counters in addition to its responses. */
export interface Counts {
  bytes: number
  ended: number
}

/** The position of the probe's read model. */
export const shown_position = 41

const waitFor = (position: number) =>
  position <= shown_position ? Effect.void : Effect.fail(new Behind({ detail: "not yet" }))

const groupOf = (base: `/${string}`) =>
  HttpApiGroup.make("probe").add(
    HttpApiEndpoint.get("read", base, { success: Seen }).annotate(Needs, {
      scopes: ["blobs:read"],
      roles: ["admin"],
    }),
    HttpApiEndpoint.delete("remove", `${base}/item/:id`, {
      params: { id: BlobIdFromText },
      query: { limit: Schema.optionalKey(Schema.FiniteFromString) },
      success: Seen,
      error: rejections(),
    }).annotate(Needs, { scopes: ["blobs:write"] }),
    HttpApiEndpoint.get("locked", `${base}/locked`, { success: Seen }),
    HttpApiEndpoint.post("echo", `${base}/echo`, { payload: Echo, success: Echo }).annotate(
      Needs,
      "public",
    ),
    HttpApiEndpoint.post("command", `${base}/command`, { success: Seen }).annotate(
      Needs,
      "authenticated",
    ),
    HttpApiEndpoint.post("exact", `${base}/exact`, { success: Schema.Json }).annotate(
      Needs,
      "public",
    ),
    HttpApiEndpoint.get("boom", `${base}/boom`, { success: Seen }).annotate(Needs, "public"),
    HttpApiEndpoint.get("slow", `${base}/slow`, {
      query: { ms: Schema.FiniteFromString },
      success: Seen,
    }).annotate(Needs, "public"),
    HttpApiEndpoint.get("absent", `${base}/absent`, {
      query: { detail: Schema.String },
      success: Seen,
      error: rejections(NotFound, NodeUnknown),
    }).annotate(Needs, "public"),
    HttpApiEndpoint.get("events", `${base}/events`, {
      success: HttpApiSchema.StreamSse({ data: Schema.Struct({ n: Schema.Int }) }),
    })
      .annotate(Needs, "public")
      .annotate(Streamed, true),
    HttpApiEndpoint.get("silence", `${base}/silence`, {
      success: HttpApiSchema.StreamUint8Array(),
    }).annotate(Needs, "public"),
    HttpApiEndpoint.post("upload", `${base}/upload`, {
      payload: HttpApiSchema.StreamUint8Array(),
      success: Schema.Struct({ bytes: Schema.Int }),
    })
      .annotate(Needs, "public")
      .annotate(Streamed, true),
  )

const apiOf = (name: string, base: `/${string}`) => HttpApi.make(name).add(groupOf(base))

const exact = jsonBody(Schema.Struct({ n: Schema.BigInt }))

/** A response without a body. */
const bare = HttpServerResponse.empty({ status: 416, headers: { "content-range": "bytes */5" } })

const handlersOf = (api: ReturnType<typeof apiOf>, counts: Counts) =>
  HttpApiBuilder.group(api, "probe", (of) =>
    of
      .handleAll({
        read: () => seen,
        remove: () => seen,
        locked: () => seen,
        echo: ({ payload }) => Effect.succeed(payload),
        command: () => seen,
        boom: () => Effect.die(new Error("the secret cause")),
        slow: ({ query }) =>
          Effect.andThen(Effect.sleep(query.ms), seen).pipe(
            Effect.ensuring(Effect.sync(() => counts.ended++)),
          ),
        absent: ({ query: { detail } }) => {
          if (detail === "bare") return Effect.succeed(bare)
          return Effect.fail(
            detail === "node" ? new NodeUnknown({ detail }) : new NotFound({ detail }),
          )
        },
        events: () =>
          Effect.succeed(
            Stream.tick("50 millis").pipe(
              Stream.map(() => ({ n: counts.bytes++ })),
              Stream.ensuring(Effect.sync(() => counts.ended++)),
            ),
          ),
        silence: () =>
          Effect.succeed(
            Stream.concat(Stream.make(new Uint8Array([1])), Stream.never).pipe(
              Stream.ensuring(Effect.sync(() => counts.ended++)),
            ),
          ),
        upload: ({ payload }) =>
          Stream.runForEach(payload, (chunk) =>
            Effect.sync(() => {
              counts.bytes += chunk.length
            }),
          ).pipe(
            Effect.orDie,
            Effect.ensuring(Effect.sync(() => counts.ended++)),
            Effect.as({ bytes: counts.bytes }),
          ),
      })
      .handleRaw("exact", ({ request }) =>
        Effect.map(exact(request), ({ n }) => ({ n: n.toString() })),
      ),
  )

/** The service `name` with all its endpoints under `base`. */
export const probe = (
  name: string,
  base: `/${string}`,
  counts: Counts = { bytes: 0, ended: 0 },
) => {
  const api = apiOf(name, base)
  const layer = HttpApiBuilder.layer(api).pipe(Layer.provide(handlersOf(api, counts)))
  return { name, api, routes: appOf(layer, Context.empty()), waitFor }
}
