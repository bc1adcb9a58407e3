/** Programs of the tree: run to their end, or kept running as children until a scope closes. */
import { type ChildProcess, spawn } from "node:child_process"
import { readFileSync } from "node:fs"
import { Deferred, Effect, Schema } from "effect"

/** A program failed, or did not get ready; the message holds the last of what it said. */
export class RadosgwFailed extends Schema.TaggedError<RadosgwFailed>()("RadosgwFailed", {
  message: Schema.String,
}) {}

export interface Programs {
  /** Where they run, and where each has its log, `<name>.log`. */
  readonly folder: string
  /** All that they get. */
  readonly environment: Readonly<Record<string, string>>
}

/** Milliseconds for a program that prepares something; bluestore's takes 4,000. */
const prepare_ms = 60_000
/** Characters of what a program said, and lines of it in a message. */
const said_chars_max = 65_536
const said_lines_max = 5

/** Runs a program to its end; answers what it wrote to its standard output. */
export const runProgram = Effect.fnUntraced(function* (
  programs: Programs,
  program: string,
  args: ReadonlyArray<string>,
) {
  const child = yield* startChild(programs, program, args)
  const how = yield* Effect.timeoutOrElse(child.ended, {
    duration: prepare_ms,
    orElse: () => Effect.fail(child.failed(`did not end within ${prepare_ms} ms`)),
  })
  return how === "code 0" ? child.stdout() : yield* child.failed(`ended (${how})`)
}, Effect.scoped)

/**
 * Starts a program in a session of its own, so that a Ctrl-C at the terminal reaches it only
 * through us. It is killed with the scope, since nothing of it is kept and the gateway takes more
 * than 3 s to stop in order; and by the kernel where this thread ends without closing the scope.
 */
export const startChild = Effect.fnUntraced(function* (
  programs: Programs,
  program: string,
  args: ReadonlyArray<string>,
  log?: string,
) {
  const ended = yield* Deferred.make<string>()
  const said = { stdout: "", stderr: "" }
  const spawned = Effect.callback<ChildProcess, RadosgwFailed>((resume) => {
    const child = spawn("setpriv", ["--pdeathsig", "KILL", program, ...args], {
      cwd: programs.folder,
      detached: true,
      env: programs.environment,
      stdio: ["ignore", "pipe", "pipe"],
    })
    for (const output of ["stdout", "stderr"] as const) {
      child[output].setEncoding("utf8").on("data", (text: string) => {
        said[output] = (said[output] + text).slice(-said_chars_max)
      })
    }
    child.once("error", ({ message }) => {
      Deferred.doneUnsafe(ended, Effect.succeed(message))
      resume(new RadosgwFailed({ message: `${program} cannot be run: ${message}` }))
    })
    // Not "exit": its last words may still be on their way then.
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
    /** Answers how it ended, `code 0` for instance, once it has. */
    ended: Deferred.await(ended),
    stdout: () => said.stdout,
    failed: (what: string) =>
      new RadosgwFailed({
        message: [`${program} ${what}`, ...lastLines(said.stderr || readLog(log))].join("; "),
      }),
  }
})

/** With whatever it has started: that holds the pipes open. */
const killGroup = ({ pid, exitCode, signalCode }: ChildProcess) => {
  if (pid === undefined || exitCode !== null || signalCode !== null) return
  try {
    process.kill(-pid, "SIGKILL")
  } catch {
    // It ended just now.
  }
}

const lastLines = (text: string) => text.trim().split("\n").slice(-said_lines_max)

const readLog = (path: string | undefined) => {
  if (path === undefined) return ""
  try {
    return readFileSync(path, "utf8").slice(-said_chars_max)
  } catch {
    // It did not come to write one.
    return ""
  }
}
