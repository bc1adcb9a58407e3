/** `/livez`, `/readyz`, `/metrics`. Source: DECISIONS, "health"; decision 0140. */
import { Context, Duration, Effect, Layer } from "effect"
import { HttpServerResponse } from "effect/http"
import { HttpApiBuilder } from "effect/http-api"
import { appOf, type Mounted } from "#gateway/routes.ts"
import { HealthApi } from "#gateway/system/apis/health.ts"

/** A service that takes longer to report its readiness is not ready, in milliseconds. */
const ready_ms_max = 2000

export interface HealthParts {
  /** Services, or roles without paths in this process. */
  readonly services: ReadonlyArray<Pick<Mounted, "name" | "ready" | "note">>
  /** Prometheus text. */
  readonly metrics: Effect.Effect<string>
  /** Whether the process is draining: it still responds, but should get no more requests. */
  readonly isEnding?: () => boolean
}

/** A service whose readiness check dies is not ready; the reason is in the log. */
const broken = (defect: unknown) =>
  Effect.as(
    Effect.logWarning("A readiness check failed.", defect),
    "failed its readiness check: see the server's log",
  )

/** One line of `/readyz`: the reason why a service is not ready, or `ok` and its note. */
const readiness = ({
  name,
  ready,
  note = Effect.succeed(undefined),
}: HealthParts["services"][number]) =>
  Effect.zip(
    Effect.catchDefect(ready, broken),
    // A failing note must not affect the line: an offline database has its own line.
    Effect.catchDefect(note, () => Effect.undefined),
  ).pipe(
    Effect.timeoutOrElse({
      duration: Duration.millis(ready_ms_max),
      orElse: () => Effect.succeed(["does not respond", undefined] as const),
    }),
    Effect.map(([why, note]) => {
      const status = why ?? (note === undefined ? "ok" : `ok; ${note}`)
      return { is_ready: why === undefined, line: `${name} ${status}` }
    }),
  )

const ending = HttpServerResponse.text("almanac is stopping\n", { status: 503 })

const readyz = ({ services, isEnding = () => false }: HealthParts) =>
  Effect.suspend(() => {
    if (isEnding()) return Effect.succeed(ending)
    return Effect.map(Effect.forEach(services, readiness, { concurrency: "unbounded" }), (all) =>
      HttpServerResponse.text(`${all.map(({ line }) => line).join("\n")}\n`, {
        status: all.every(({ is_ready }) => is_ready) ? 200 : 503,
      }),
    )
  })

/** The service of probes and metrics, to be mounted in every process. */
export const healthService = (parts: HealthParts) => {
  const handlers = HttpApiBuilder.group(HealthApi, "process", (handlers) =>
    handlers.handleAll({
      live: () => Effect.succeed(HttpServerResponse.text("ok\n")),
      ready: () => readyz(parts),
      metrics: () =>
        Effect.map(parts.metrics, (text) =>
          HttpServerResponse.text(text, {
            contentType: "text/plain; version=0.0.4; charset=utf-8",
          }),
        ),
    }),
  )
  const layer = HttpApiBuilder.layer(HealthApi).pipe(Layer.provide(handlers))
  return { name: "health", api: HealthApi, routes: appOf(layer, Context.empty()) }
}
