/** Runs Ceph's programs: to completion, or as children until a scope closes. */
import { type ChildProcess, spawn } from "node:child_process"
import { readFileSync } from "node:fs"
import { Deferred, Effect, Schema } from "effect"

/** A program failed or did not become ready; the message has its last output. */
export class RadosgwFailed extends Schema.TaggedError<RadosgwFailed>()("RadosgwFailed", {
  message: Schema.String,
}) {}

export interface Programs {
  /** Working folder, which also has each program's log, `<name>.log`. */
  readonly folder: string
  /** The complete environment of the programs. */
  readonly environment: Readonly<Record<string, string>>
}

/** Timeout of a setup program in milliseconds; bluestore's takes 4,000. */
const prepare_ms = 60_000
/** Maximum output that is kept in characters, and lines of it in a message. */
const output_chars_max = 65_536
const output_lines_max = 5

/** Runs a program to completion and returns its standard output. */
export const runProgram = Effect.fnUntraced(function* (
  programs: Programs,
  program: string,
  args: ReadonlyArray<string>,
) {
  const child = yield* startChild(programs, program, args)
  const exit = yield* Effect.timeoutOrElse(child.ended, {
    duration: prepare_ms,
    orElse: () => Effect.fail(child.failed(`did not finish within ${prepare_ms} ms`)),
  })
  return exit === "code 0" ? child.stdout() : yield* child.failed(`ended (${exit})`)
}, Effect.scoped)

/**
 * Starts a program in its own session, so that Ctrl-C at the terminal does not reach it directly.
 * It is killed with the scope, because its data is discarded and an orderly stop of the gateway
 * takes more than 3 s. The kernel kills it if this thread ends without closing the scope.
 */
export const startChild = Effect.fnUntraced(function* (
  programs: Programs,
  program: string,
  args: ReadonlyArray<string>,
  log?: string,
) {
  const ended = yield* Deferred.make<string>()
  const captured = { stdout: "", stderr: "" }
  const spawned = Effect.callback<ChildProcess, RadosgwFailed>((resume) => {
    const child = spawn("setpriv", ["--pdeathsig", "KILL", program, ...args], {
      cwd: programs.folder,
      detached: true,
      env: programs.environment,
      stdio: ["ignore", "pipe", "pipe"],
    })
    for (const output of ["stdout", "stderr"] as const) {
      child[output].setEncoding("utf8").on("data", (text: string) => {
        captured[output] = (captured[output] + text).slice(-output_chars_max)
      })
    }
    child.once("error", ({ message }) => {
      Deferred.doneUnsafe(ended, Effect.succeed(message))
      resume(new RadosgwFailed({ message: `${program} cannot be run: ${message}` }))
    })
    // Not "exit", which may precede the last output.
    child.once("close", (code, signal) => {
      Deferred.doneUnsafe(ended, Effect.succeed(signal ? `signal ${signal}` : `code ${code}`))
    })
    child.once("spawn", () => resume(Effect.succeed(child)))
  })
  const kill = (child: ChildProcess) => {
    killGroup(child)
    return Deferred.await(ended)
  }
  const child = yield* Effect.acquireRelease(spawned, kill)
  return {
    pid: child.pid,
    /** Completes with how it ended, for example `code 0`. */
    ended: Deferred.await(ended),
    stdout: () => captured.stdout,
    failed: (problem: string) =>
      new RadosgwFailed({
        message: [`${program} ${problem}`, ...lastLines(captured.stderr || readLog(log))].join(
          "; ",
        ),
      }),
  }
})

/** Kills its children too, because they hold the pipes open. */
const killGroup = ({ pid, exitCode, signalCode }: ChildProcess) => {
  if (pid === undefined || exitCode !== null || signalCode !== null) return
  try {
    process.kill(-pid, "SIGKILL")
  } catch {
    // It has just ended.
  }
}

const lastLines = (text: string) => text.trim().split("\n").slice(-output_lines_max)

const readLog = (path: string | undefined) => {
  if (path === undefined) return ""
  try {
    return readFileSync(path, "utf8").slice(-output_chars_max)
  } catch {
    // The program did not write a log.
    return ""
  }
}
