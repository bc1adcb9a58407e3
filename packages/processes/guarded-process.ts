/**
 * Child processes that end with this process, however it ends.
 *
 * A shell starts a guard in the background and then becomes the program, so the process id, the
 * exit code and the signals are the program's own. The guard waits for the end of a pipe whose
 * other end only this process holds: the kernel closes it even after SIGKILL. Then the guard ends
 * the program, and after a grace period its whole process group. The guard belongs to that group,
 * and no process id is reused while a group of that number exists, so it never ends another
 * process. Only POSIX tools are used: prctl's death signal is for Linux alone, and follows the
 * thread that started the child.
 */
import { type ChildProcess, type SpawnOptions, spawn } from "node:child_process"
import { accessSync, constants } from "node:fs"

/**
 * Number of checks for the program's end, 0.1 s apart, between SIGTERM and SIGKILL. No program here
 * needs longer, and SIGKILL loses nothing that was acknowledged.
 */
const grace_looks = 15
/** A shell redirects single-digit descriptors only. */
const descriptors_max = 10

export interface GuardedOptions extends Pick<SpawnOptions, "cwd" | "env" | "signal" | "timeout"> {
  readonly killSignal?: NodeJS.Signals
  /** As in `spawn`, at most nine; the guard's pipe is the descriptor after these. */
  readonly stdio: ReadonlyArray<"ignore" | "pipe" | "ipc">
}

/** The guard's name in a process list, before the program's own command line. */
export const guard_name = "almanac-guard"

/** `$$` is the program's id, also in the guard. The target 0 is the guard's own process group. */
const script = (descriptor: number) =>
  [
    `{ read -r _ <&${descriptor}; kill $$; i=0`,
    `while kill -0 $$ && [ $i -lt ${grace_looks} ] && sleep 0.1; do i=$((i+1)); done`,
    `kill -KILL 0; } </dev/null >/dev/null 2>&1 & exec "$@" ${descriptor}<&-`,
  ].join("\n")

/**
 * Starts a program in its own session, so that a Ctrl-C in the terminal reaches it only through
 * this process. `program` is an absolute path. If it cannot be executed, the child emits the
 * "error" event of `spawn`.
 */
export const spawnGuarded = (
  program: string,
  args: ReadonlyArray<string>,
  { stdio, ...options }: GuardedOptions,
): ChildProcess => {
  const descriptor = stdio.length
  if (descriptor >= descriptors_max) throw new RangeError("too many descriptors for a guard")
  const settings: SpawnOptions = { ...options, detached: true, stdio: [...stdio, "pipe"] }
  const guarded = ["-c", script(descriptor), guard_name, program, ...args]
  // A shell would report "not found" only by its exit code.
  const child = isExecutable(program)
    ? spawn("/bin/sh", guarded, settings)
    : spawn(program, args, settings)
  const pipe = child.stdio[descriptor]
  // A guard that was killed first closes its end.
  pipe?.on("error", () => undefined)
  // Lets the guard end, together with the program's remaining processes.
  child.once("exit", () => pipe?.destroy())
  return child
}

const isExecutable = (program: string) => {
  try {
    accessSync(program, constants.X_OK)
    return true
  } catch {
    return false
  }
}
