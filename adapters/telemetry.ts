/** Traces over OTLP where the settings name a collector, and nothing otherwise. */
import { Effect, Layer, Option, References, Tracer } from "effect"
import { FetchHttpClient } from "effect/http"
import { OtlpSerialization, OtlpTracer } from "effect/observability"
import { redacted } from "#adapters/logging.ts"
import type { Settings } from "#schemas/settings.ts"

/** Spans wait at most this long before they are sent. */
const export_interval = "2 seconds"
/** A collector that takes longer does not answer: what waits for it is memory. In milliseconds. */
const send_ms_max = 5_000
/** The process ends within ten seconds, of which requests have eight. */
const shutdown_timeout = "1 second"

/**
 * What is random in a trace's id is its last 14 digits; of them a number holds 13 exactly.
 * Source: W3C Trace Context, level 2.
 */
const random = { from: -14, to: -1, digits: 13 }

const decoder = new TextDecoder()

/** The last door: what a failure's message may have brought into a span does not leave. */
const redactingFetch =
  (send_ms: number): typeof globalThis.fetch =>
  (input, init = {}) => {
    const { body, signal } = init
    const bytes = body instanceof Uint8Array ? decoder.decode(body) : body
    const clean = typeof bytes === "string" ? redacted(bytes) : bytes
    const late = AbortSignal.timeout(send_ms)
    return globalThis.fetch(input, {
      ...init,
      ...(clean === undefined ? {} : { body: clean }),
      signal: signal ? AbortSignal.any([signal, late]) : late,
    })
  }

/**
 * Whether a trace is of this share of all: every process says the same of it, and one with a larger
 * share sends it too. Source: OpenTelemetry, TraceState: probability sampling, R >= T.
 */
export const isSampled = (trace_id: string, ratio: number) =>
  Number.parseInt(trace_id.slice(random.from, random.to), 16) / 16 ** random.digits >= 1 - ratio

/** The tracer, which sends this share of the traces that begin here. */
const sampling = (ratio: number) =>
  Layer.effect(
    Tracer.Tracer,
    Effect.map(Tracer.Tracer, (tracer) =>
      Tracer.make({
        span: (options) => {
          const span = tracer.span(options)
          const is_first = Option.isNone(options.parent)
          // Its id is made with it; nobody has the span before this.
          return is_first && !isSampled(span.traceId, ratio)
            ? Object.assign(span, { sampled: false })
            : span
        },
      }),
    ),
  )

/**
 * The tracer for `telemetry.otlp_url`, which is the collector's base: `/v1/traces` is added. Spans
 * are of the service `name`.
 */
export const telemetry = (
  { telemetry: { otlp_url, sample_ratio } }: Pick<Settings, "telemetry">,
  service_version: string,
  name = "almanac",
  send_ms = send_ms_max,
) =>
  otlp_url === ""
    ? // Spans that nobody collects are not made.
      Layer.succeed(References.TracerEnabled, false)
    : sampling(sample_ratio).pipe(
        Layer.provideMerge(
          OtlpTracer.layer({
            url: `${otlp_url.replace(/\/$/, "")}/v1/traces`,
            resource: { serviceName: name, serviceVersion: service_version },
            exportInterval: export_interval,
            shutdownTimeout: shutdown_timeout,
          }),
        ),
        Layer.provide(OtlpSerialization.layerJson),
        Layer.provide(FetchHttpClient.layer),
        Layer.provide(Layer.succeed(FetchHttpClient.Fetch, redactingFetch(send_ms))),
        Layer.catchCause((cause) =>
          Layer.effectDiscard(Effect.logWarning("Traces cannot be sent.", cause)),
        ),
      )
