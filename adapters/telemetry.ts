/** Traces over OTLP where the settings name a collector, and nothing otherwise. */
import { Effect, Layer, References } from "effect"
import { FetchHttpClient } from "effect/http"
import { OtlpSerialization, OtlpTracer } from "effect/observability"
import type { Settings } from "#schemas/settings.ts"

/** Spans wait at most this long before they are sent. */
const export_interval = "2 seconds"
/** The process ends within ten seconds, of which requests have eight. */
const shutdown_timeout = "1 second"

/** The tracer for `telemetry.otlp_url`, which is the collector's base: `/v1/traces` is added. */
export const telemetry = ({ telemetry: { otlp_url } }: Settings, service_version: string) =>
  otlp_url === ""
    ? // Spans that nobody collects are not made.
      Layer.succeed(References.TracerEnabled, false)
    : OtlpTracer.layer({
        url: `${otlp_url.replace(/\/$/, "")}/v1/traces`,
        resource: { serviceName: "almanac", serviceVersion: service_version },
        exportInterval: export_interval,
        shutdownTimeout: shutdown_timeout,
      }).pipe(
        Layer.provide(OtlpSerialization.layerJson),
        Layer.provide(FetchHttpClient.layer),
        Layer.catchCause((cause) =>
          Layer.effectDiscard(Effect.logWarning("Traces cannot be sent.", cause)),
        ),
      )
