/** Traces over OTLP if a collector is configured. */
import { Effect, Layer, Option, References, Tracer } from "effect"
import { FetchHttpClient } from "effect/http"
import { OtlpSerialization, OtlpTracer } from "effect/observability"
import { redacted } from "#adapters/logging.ts"
import type { Settings } from "#schemas/settings.ts"

/** Maximum buffering time of spans. */
const export_interval = "2 seconds"
/** Timeout of an export in milliseconds: pending spans take memory. */
const send_ms_max = 5_000
/** The process ends within ten seconds, of which requests have eight. */
const shutdown_timeout = "1 second"

/**
 * The random part of a trace id is its last 14 digits, of which a number holds 13 exactly.
 * Source: W3C Trace Context, level 2.
 */
const random = { from: -14, to: -1, digits: 13 }

const decoder = new TextDecoder()

/** Redacts credentials in exported spans, for example from error messages. */
const redactingFetch =
  (send_ms: number): typeof globalThis.fetch =>
  (input, init = {}) => {
    const { body, signal } = init
    const bytes = body instanceof Uint8Array ? decoder.decode(body) : body
    const redacted_body = typeof bytes === "string" ? redacted(bytes) : bytes
    const timeout = AbortSignal.timeout(send_ms)
    return globalThis.fetch(input, {
      ...init,
      ...(redacted_body === undefined ? {} : { body: redacted_body }),
      signal: signal ? AbortSignal.any([signal, timeout]) : timeout,
    })
  }

/**
 * Whether a trace is sampled at this ratio. All processes agree, and a process with a larger ratio
 * samples it too. Source: OpenTelemetry, TraceState: probability sampling, R >= T.
 */
export const isSampled = (trace_id: string, ratio: number) =>
  Number.parseInt(trace_id.slice(random.from, random.to), 16) / 16 ** random.digits >= 1 - ratio

/** A tracer that samples this ratio of new traces. */
const sampling = (ratio: number) =>
  Layer.effect(
    Tracer.Tracer,
    Effect.map(Tracer.Tracer, (tracer) =>
      Tracer.make({
        span: (options) => {
          const span = tracer.span(options)
          const is_first = Option.isNone(options.parent)
          // The id is created with the span, which is not shared before this.
          return is_first && !isSampled(span.traceId, ratio)
            ? Object.assign(span, { sampled: false })
            : span
        },
      }),
    ),
  )

/**
 * The tracer for `telemetry.otlp_url`, the collector's base URL: `/v1/traces` is appended. Spans
 * have the service name `name`.
 */
export const telemetry = (
  { telemetry: { otlp_url, sample_ratio } }: Pick<Settings, "telemetry">,
  service_version: string,
  name = "almanac",
  send_ms = send_ms_max,
) =>
  otlp_url === ""
    ? // Without a collector, spans are not created.
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
          Layer.effectDiscard(Effect.logWarning("Traces could not be sent.", cause)),
        ),
      )
