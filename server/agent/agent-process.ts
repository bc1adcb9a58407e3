/**
 * `node agent-process.ts`: an agent that the server starts on its own machine. It reads its
 * credentials from standard input and works until the input closes or it gets a signal. It loads
 * none of the server's code, so that many agents fit on one machine.
 */
import { createInterface } from "node:readline"
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import { Cause, Effect, Exit, Layer, Predicate, References, Runtime, Schema } from "effect"
import { logging } from "#adapters/logging.ts"
import { keepPrivate } from "#adapters/process-privacy.ts"
import { readSettings } from "#adapters/settings.ts"
import manifest from "#package.json" with { type: "json" }
import type { Settings } from "#schemas/settings.ts"
import { AgentCredentials } from "#server/agent/credentials.ts"
import { runAgent } from "#server/agent/run.ts"

/** The first line of standard input, and its end, which means that the parent has exited. */
const boot = Effect.sync(() => {
  const lines = createInterface({ input: process.stdin })
  const closed = new Promise<void>((resolve) => lines.once("close", resolve))
  const first = new Promise<string>((resolve) => {
    lines.once("line", resolve)
    void closed.then(() => resolve(""))
  })
  return { first, closed }
})

/** Tracing is loaded only with a collector, because it takes megabytes in each agent. */
const tracing = ({ telemetry }: Settings) =>
  telemetry.otlp_url === ""
    ? Effect.succeed(Layer.succeed(References.TracerEnabled, false))
    : Effect.promise(async () => {
        const sending = await import("#adapters/telemetry.ts")
        return sending.telemetry({ telemetry }, manifest.version, "almanac-agent")
      })

const agent = Effect.gen(function* () {
  const { first, closed } = yield* boot
  const text = yield* Effect.promise(() => first)
  if (text === "") return
  const credentials = yield* Schema.decodeEffect(AgentCredentials)(text)
  const { settings } = yield* readSettings({ ...credentials.sources, env: process.env })
  yield* Effect.raceFirst(
    runAgent(credentials, settings),
    Effect.promise(() => closed),
  ).pipe(
    Effect.annotateLogs({ worker_id: credentials.worker_id }),
    Effect.provide([logging(() => settings.log.level), yield* tracing(settings)]),
  )
})

const messageOf = (error: unknown) =>
  Predicate.hasProperty(error, "message") ? String(error.message) : String(error)

const explain = (cause: Cause.Cause<unknown>) =>
  Cause.hasInterruptsOnly(cause)
    ? Effect.void
    : Effect.logError(`The worker is stopping: ${messageOf(Cause.squash(cause))}`)

/** Exits with 0 after a signal: a requested stop is not a failure. */
const teardown: Runtime.Teardown = (exit, onExit) => {
  const interrupted = Exit.isFailure(exit) && Cause.hasInterruptsOnly(exit.cause)
  return interrupted ? onExit(0) : Runtime.defaultTeardown(exit, onExit)
}

keepPrivate()

agent.pipe(
  Effect.tapCause(explain),
  Effect.provide(logging(() => "info")),
  NodeRuntime.runMain({ disableErrorReporting: true, teardown }),
)
