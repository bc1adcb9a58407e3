/** Verbs that the server starts as processes of their own: a slow one never holds it up. */
import type { ChildProcess } from "node:child_process"
import { join } from "node:path"
import { Effect, Schema } from "effect"
import { StopDeadline, spawnGuarded } from "#processes"
import { Detail, detailOf } from "#schemas/capital-pressure/feed.ts"
import type { SettingsSources } from "#server/program.ts"

/**
 * Milliseconds that a child gets to stop when it is told to. A verb needs a tenth of it, and the
 * server's own ten seconds are its requests', mostly (decisions, address).
 */
const stop_ms_max = 1_500

/** What is kept of what a child says, in characters: its last line is told, not its output. */
const said_chars_max = 4_000

/** It did not end well. `code` is null where it was ended; `detail` is the last it said. */
export class ChildFailed extends Schema.TaggedError<ChildFailed>()("ChildFailed", {
  code: Schema.NullOr(Schema.Int),
  detail: Detail,
}) {}

/** How a child is started. */
export interface ChildProgram {
  readonly program: string
  readonly args: ReadonlyArray<string>
  readonly environment: NodeJS.ProcessEnv
}

/** `almanac <args>` under the settings of this process. No argument is a secret. */
export const verbProgram = (
  { config, set }: SettingsSources,
  args: ReadonlyArray<string>,
): ChildProgram => ({
  program: process.execPath,
  args: [
    join(import.meta.dirname, "../../launcher/run.mjs"),
    ...args,
    ...(config === "" ? [] : ["--config", config]),
    // A secret is refused there, and so is never in one of them.
    ...set.flatMap((one) => ["--set", one]),
  ],
  environment: process.env,
})

/** The last line of a text that says anything, without what could write on a terminal. */
export const lastLine = (text: string) => {
  const lines = text.split(/[\r\n]+/).map((line) => line.replaceAll(/\p{Cc}/gu, "").trim())
  return detailOf(lines.findLast((line) => line !== "") ?? "")
}

const ended = (child: ChildProcess) =>
  new Promise<void>((resolve) => {
    if (child.exitCode !== null || child.signalCode !== null) resolve()
    else child.once("close", () => resolve())
  })

/** Tells it to stop, ends it where it does not, and waits for its end. */
const stopped = (child: ChildProcess) =>
  Effect.gen(function* () {
    if (child.pid === undefined) return
    child.kill("SIGTERM")
    const wait_ms = yield* (yield* StopDeadline).part(stop_ms_max)
    yield* Effect.promise(async () => {
      const late = setTimeout(() => child.kill("SIGKILL"), wait_ms)
      await ended(child)
      clearTimeout(late)
    })
  })

/** Runs a child to its end; it ends early when this effect is interrupted or this process dies. */
export const runChild = ({ program, args, environment }: ChildProgram) =>
  Effect.callback<void, ChildFailed>((resume) => {
    const stdio = ["ignore", "ignore", "pipe"] as const
    const child = spawnGuarded(program, args, { env: environment, stdio })
    let said = ""
    child.stderr?.setEncoding("utf8").on("data", (text: string) => {
      said = (said + text).slice(-said_chars_max)
    })
    child.once("error", ({ message }) =>
      resume(Effect.fail(new ChildFailed({ code: null, detail: lastLine(message) }))),
    )
    child.once("close", (code, signal) => {
      if (code === 0) return resume(Effect.void)
      const detail = lastLine(said) || `It ended with ${signal ?? `code ${code}`}.`
      resume(Effect.fail(new ChildFailed({ code, detail })))
    })
    return stopped(child)
  })
