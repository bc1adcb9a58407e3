/** A contestant in its own process, so that garbage and timers of one do not slow down another. */
import { type ChildProcess, fork } from "node:child_process"
import { mkdir } from "node:fs/promises"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import type { Home } from "./contestant.ts"
import type { Effort, Round } from "./round.ts"
import type { Settings } from "./suite.ts"

/** A message from the bench to a contestant's process. */
export type Order =
  | { readonly order: "start"; readonly module: string; readonly name: string; readonly home: Home }
  | { readonly order: "round"; readonly effort: Effort }
  | { readonly order: "stop" }

/** The response; each order gets one. */
export type Answer = { readonly round?: Round } | { readonly failed: string }

export interface Seat {
  readonly name: string
  readonly round: (effort: Effort) => Promise<Round>
}

/** Milliseconds for a process to exit after a stop; then it is killed. */
const stop_wait_ms = 10_000

/**
 * Starts the contestant `name` that `module` (relative to this folder) exports, in its own folder
 * under home.folder. Rejects with the contestant's reason if it cannot take part.
 */
export const seat = async (
  module: string,
  name: string,
  home: Home,
  onEnd: Settings["onEnd"],
): Promise<Seat> => {
  const folder = join(home.folder, name)
  await mkdir(folder)
  const child = fork(fileURLToPath(new URL("stage-child.ts", import.meta.url)), {
    execArgv: ["--no-deprecation"],
    stdio: ["ignore", "ignore", "inherit", "ipc"],
  })
  onEnd(() => end(child))
  try {
    await ask(child, { order: "start", module, name, home: { ...home, folder } })
  } catch (cause) {
    await end(child)
    throw cause
  }
  const round = async (effort: Effort) => {
    const answer = await ask(child, { order: "round", effort })
    if ("failed" in answer || !answer.round) throw new Error(`${name} answered no round`)
    return answer.round
  }
  return { name, round }
}

const ask = (child: ChildProcess, order: Order): Promise<Answer> =>
  new Promise((resolve, reject) => {
    const gone = () => reject(new Error("its process ended"))
    child.once("exit", gone)
    child.once("message", (message) => {
      child.off("exit", gone)
      // The other end of this pipe is stage-child.ts, which sends only responses.
      const answer = message as Answer
      if ("failed" in answer) reject(new Error(answer.failed))
      else resolve(answer)
    })
    child.send(order, (error) => error && reject(error))
  })

const end = (child: ChildProcess): Promise<void> =>
  new Promise((resolve) => {
    if (child.exitCode !== null || child.signalCode !== null) return resolve()
    const timer = setTimeout(() => child.kill("SIGKILL"), stop_wait_ms)
    child.once("exit", () => {
      clearTimeout(timer)
      resolve()
    })
    if (child.connected) child.send({ order: "stop" } satisfies Order, () => {})
  })
