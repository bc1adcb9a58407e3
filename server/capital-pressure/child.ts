/** Commands that the server runs as child processes, so that slow ones never block it. */
import type { ChildProcess } from "node:child_process"
import { join } from "node:path"
import { Effect, Schema } from "effect"
import { StopDeadline, spawnGuarded } from "#processes"
import { Detail, detailOf } from "#schemas/capital-pressure/feed.ts"
import type { SettingsSources } from "#server/program.ts"

/**
 * How long a child may take to stop, in milliseconds. A command needs a tenth of it, and most of
 * the server's own ten seconds are for its requests (decisions, address).
 */
const stop_ms_max = 1_500

/** How much of a child's output is kept, in characters: only its last line is reported. */
const output_chars_max = 4_000

/** The child failed. `code` is null after a signal; `detail` is its last line of output. */
export class ChildFailed extends Schema.TaggedError<ChildFailed>()("ChildFailed", {
  code: Schema.NullOr(Schema.Int),
  detail: Detail,
}) {}

/** The command line and environment of a child. */
export interface ChildProgram {
  readonly program: string
  readonly args: ReadonlyArray<string>
  readonly environment: NodeJS.ProcessEnv
}

/** `almanac <args>` under the settings of this process. No argument is a secret. */
export const commandProgram = (
  { config, set }: SettingsSources,
  args: ReadonlyArray<string>,
): ChildProgram => ({
  program: process.execPath,
  args: [
    join(import.meta.dirname, "../../launcher/run.mjs"),
    ...args,
    ...(config === "" ? [] : ["--config", config]),
    // `--set` rejects secrets, so none can be in the arguments.
    ...set.flatMap((one) => ["--set", one]),
  ],
  environment: process.env,
})

/** The last non-empty line of an output, without control characters. */
export const lastLine = (text: string) => {
  const lines = text.split(/[\r\n]+/).map((line) => line.replaceAll(/\p{Cc}/gu, "").trim())
  return detailOf(lines.findLast((line) => line !== "") ?? "")
}

const exited = (child: ChildProcess) =>
  new Promise<void>((resolve) => {
    if (child.exitCode !== null || child.signalCode !== null) resolve()
    else child.once("close", () => resolve())
  })

/** Sends SIGTERM, then SIGKILL after the deadline, and waits for the exit. */
const stop = (child: ChildProcess) =>
  Effect.gen(function* () {
    if (child.pid === undefined) return
    child.kill("SIGTERM")
    const wait_ms = yield* (yield* StopDeadline).part(stop_ms_max)
    yield* Effect.promise(async () => {
      const late = setTimeout(() => child.kill("SIGKILL"), wait_ms)
      await exited(child)
      clearTimeout(late)
    })
  })

/** Runs a child to its end. It is stopped if the effect is interrupted or this process dies. */
export const runChild = ({ program, args, environment }: ChildProgram) =>
  Effect.callback<void, ChildFailed>((resume) => {
    const stdio = ["ignore", "ignore", "pipe"] as const
    const child = spawnGuarded(program, args, { env: environment, stdio })
    let output = ""
    child.stderr?.setEncoding("utf8").on("data", (text: string) => {
      output = (output + text).slice(-output_chars_max)
    })
    child.once("error", ({ message }) =>
      resume(Effect.fail(new ChildFailed({ code: null, detail: lastLine(message) }))),
    )
    child.once("close", (code, signal) => {
      if (code === 0) return resume(Effect.void)
      const detail = lastLine(output) || `The process ended with ${signal ?? `code ${code}`}.`
      resume(Effect.fail(new ChildFailed({ code, detail })))
    })
    return stop(child)
  })
