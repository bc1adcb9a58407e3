/**
 * `node agent-process.ts`: an agent as the server boots it on its own machine. It reads who it is
 * from standard input, works until that ends or it is told to stop, and loads nothing of the
 * server: that many of them fit on one machine.
 */
import { createInterface } from "node:readline"
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import { Cause, Effect, Exit, Layer, Predicate, References, Runtime, Schema } from "effect"
import { logging } from "#adapters/logging.ts"
import { keepPrivate } from "#adapters/process-privacy.ts"
import { readSettings } from "#adapters/settings.ts"
import manifest from "#package.json" with { type: "json" }
import type { Settings } from "#schemas/settings.ts"
import { AgentPapers } from "#server/agent/papers.ts"
import { runAgent } from "#server/agent/run.ts"

/** The first line of standard input, and its end: then who booted it is gone. */
const boot = Effect.sync(() => {
  const lines = createInterface({ input: process.stdin })
  const closed = new Promise<void>((resolve) => lines.once("close", resolve))
  const first = new Promise<string>((resolve) => {
    lines.once("line", resolve)
    void closed.then(() => resolve(""))
  })
  return { first, closed }
})

/** What sends traces is loaded where a collector is named alone: it is megabytes in each agent. */
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
  const papers = yield* Schema.decodeEffect(AgentPapers)(text)
  const { settings } = yield* readSettings({ ...papers.sources, env: process.env })
  yield* Effect.raceFirst(
    runAgent(papers, settings),
    Effect.promise(() => closed),
  ).pipe(
    Effect.annotateLogs({ worker_id: papers.worker_id }),
    Effect.provide([logging(() => settings.log.level), yield* tracing(settings)]),
  )
})

const messageOf = (error: unknown) =>
  Predicate.hasProperty(error, "message") ? String(error.message) : String(error)

const explain = (cause: Cause.Cause<unknown>) =>
  Cause.hasInterruptsOnly(cause)
    ? Effect.void
    : Effect.logError(`A worker ends: ${messageOf(Cause.squash(cause))}`)

/** Told to stop, it stops in order: that is no failure. */
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
