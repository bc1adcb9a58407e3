/** Traces over OTLP where the settings name a collector, and nothing otherwise. */
import { Effect, Layer, References } from "effect"
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
 * The tracer for `telemetry.otlp_url`, which is the collector's base: `/v1/traces` is added. Spans
 * are of the service `name`.
 */
export const telemetry = (
  { telemetry: { otlp_url } }: Pick<Settings, "telemetry">,
  service_version: string,
  name = "almanac",
  send_ms = send_ms_max,
) =>
  otlp_url === ""
    ? // Spans that nobody collects are not made.
      Layer.succeed(References.TracerEnabled, false)
    : OtlpTracer.layer({
        url: `${otlp_url.replace(/\/$/, "")}/v1/traces`,
        resource: { serviceName: name, serviceVersion: service_version },
        exportInterval: export_interval,
        shutdownTimeout: shutdown_timeout,
      }).pipe(
        Layer.provide(OtlpSerialization.layerJson),
        Layer.provide(FetchHttpClient.layer),
        Layer.provide(Layer.succeed(FetchHttpClient.Fetch, redactingFetch(send_ms))),
        Layer.catchCause((cause) =>
          Layer.effectDiscard(Effect.logWarning("Traces cannot be sent.", cause)),
        ),
      )
