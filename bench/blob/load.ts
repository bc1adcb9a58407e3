/** The load on a store, made by blob-client.ts: one process for all rounds, on the last core. */
import { type ChildProcess, fork } from "node:child_process"
import { once } from "node:events"
import { fileURLToPath } from "node:url"
import type { Loaded, LoadedOrNot } from "./client.ts"
import { client_core, pin } from "./process.ts"
import type { BlobOrder } from "./request.ts"

export interface LoadClient {
  /** One round. It rejects where one request is not answered as it must be. */
  readonly load: (order: BlobOrder) => Promise<Loaded>
  readonly stop: () => Promise<void>
}

const program = fileURLToPath(new URL("client.ts", import.meta.url))

const begin = (): ChildProcess => {
  const child = fork(program, { stdio: ["ignore", "ignore", "inherit", "ipc"] })
  if (child.pid !== undefined) pin([child.pid], client_core)
  return child
}

const end = async (child: ChildProcess | undefined) => {
  if (child === undefined || child.exitCode !== null || child.signalCode !== null) return
  const ended = once(child, "exit")
  child.kill("SIGKILL")
  await ended
}

const ask = async (child: ChildProcess, order: BlobOrder) => {
  const over = new AbortController()
  const answered = once(child, "message", over)
  const gone = once(child, "exit", over).then(() => [{ failed: "the load client ended" }])
  child.send(order)
  try {
    // blob-client.ts answers each order with one message, a LoadedOrNot.
    const [answer] = (await Promise.race([answered, gone])) as [LoadedOrNot]
    return answer
  } finally {
    over.abort()
  }
}

/** A client whose process starts with its first round, and anew after a round that failed. */
export const loadClient = (): LoadClient => {
  let child: ChildProcess | undefined
  const stop = async () => {
    const old = child
    child = undefined
    await end(old)
  }
  const load = async (order: BlobOrder) => {
    child ??= begin()
    const answer = await ask(child, order)
    if (!("failed" in answer)) return answer
    await stop()
    throw new Error(answer.failed)
  }
  return { load, stop }
}
