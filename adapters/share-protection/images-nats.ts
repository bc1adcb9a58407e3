/**
 * Images over the bus. The conductor boots the machines, so it alone knows the images: other
 * processes request them on one subject, which only the conductor serves.
 *
 * Source: decision 0153.
 */
import type { Msg, NatsConnection } from "@nats-io/transport-node"
import { Effect, Layer, Option, Result, Schedule, Schema, Stream } from "effect"
import { type Compute, Images } from "#actors/share-protection/ports/compute.ts"
import { core_inbox, overLink, sendResponse as respond, watchLink } from "#bus"
import { BackendUnavailable } from "#schemas/share-protection/rejection.ts"
import { Name } from "#schemas/share-protection/text.ts"

const subject = "conductor.share-protection.image"

/** Timeout of one attempt in milliseconds: Glance responds within it unless it is down. */
const response_ms_max = 10_000

/** Maximum attempts: 1.5 s for a newly elected conductor, as for commands. */
const attempts_max = 5

/** First pause between two attempts in milliseconds; it doubles. */
const pause_ms = 100

/** Maximum concurrent lookups; further requests wait. */
const concurrent_max = 8

/** Maximum size of a request: a name has at most 255 characters of 4 bytes. */
const bytes_max = 2048

const ImageRequest = Schema.fromJsonString(Schema.Struct({ name: Name }))

const Image = Schema.Struct({
  name: Name,
  properties: Schema.Struct({
    svc_worker_image: Schema.Boolean,
    engine_version: Schema.NullOr(Schema.String),
  }),
})

/** `image` is null if there is no image of that name. */
const ImageResponse = Schema.fromJsonString(
  Schema.Union([
    Schema.Struct({ image: Schema.NullOr(Image) }),
    Schema.Struct({ unavailable: Schema.String }),
  ]),
)

const unavailable = (detail: string) => new BackendUnavailable({ detail })

const noConductor = () => unavailable("The conductor, which manages the images, does not respond.")

/** Looks up images through the conductor. */
export const imagesNats = (connection: NatsConnection) =>
  Layer.effect(
    Images,
    Effect.gen(function* () {
      const link = yield* watchLink(connection)
      const options = { timeout: response_ms_max }
      return Images.of({
        image: Effect.fnUntraced(function* (name) {
          const text = Schema.encodeSync(ImageRequest)({ name })
          const message = yield* Effect.tryPromise({
            try: () => overLink(link, () => connection.request(subject, text, options)),
            catch: noConductor,
          }).pipe(
            Effect.retry({ times: attempts_max - 1, schedule: Schedule.exponential(pause_ms) }),
          )
          const response = yield* Effect.mapError(
            Schema.decodeEffect(ImageResponse)(message.string()),
            () => unavailable("The conductor's response is not an image."),
          )
          if ("unavailable" in response) return yield* unavailable(response.unavailable)
          return response.image ?? undefined
        }),
      })
    }),
  )

/** Serves image lookups until the scope closes. */
export const serveImages = Effect.fnUntraced(function* (
  connection: NatsConnection,
  { image }: Pick<Compute["Service"], "image">,
) {
  const respondTo = Effect.fnUntraced(function* (message: Msg) {
    const request =
      message.data.length > bytes_max
        ? Option.none()
        : Schema.decodeOption(ImageRequest)(message.string())
    // Only our processes send requests, so an invalid one is ignored.
    if (Option.isNone(request)) return
    const found = yield* Effect.result(image(request.value.name))
    const response = Result.isSuccess(found)
      ? { image: found.success ?? null }
      : { unavailable: found.failure.detail }
    respond(connection, core_inbox, message, Schema.encodeSync(ImageResponse)(response))
  })
  const messages = yield* Effect.acquireRelease(
    Effect.sync(() => connection.subscribe(subject)),
    (subscription) => Effect.sync(() => subscription.unsubscribe()),
  )
  yield* Stream.fromAsyncIterable(messages, String).pipe(
    Stream.mapEffect(respondTo, { concurrency: concurrent_max, unordered: true }),
    Stream.runDrain,
    // The subscription ends with the connection, and the connection with the process.
    Effect.ignore,
    Effect.forkScoped,
  )
})
