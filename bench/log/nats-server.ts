/** A JetStream server for the bench, filled with the messages of commit.ts. */
import { type ChildProcess, execFileSync, spawn } from "node:child_process"
import { once } from "node:events"
import { existsSync } from "node:fs"
import { mkdir, readdir, readFile } from "node:fs/promises"
import { join } from "node:path"
import { setTimeout as wait } from "node:timers/promises"
import { jetstreamManager } from "@nats-io/jetstream"
import { connect } from "@nats-io/transport-node"
import { logStreamConfig } from "#journal"
import { findBinary } from "../../launcher/binaries.mjs"
import type { Settings } from "../harness/suite.ts"
import { commitOf, messages, stream } from "./commit.ts"

const ready_wait_ms = 10_000
const poll_ms = 20
/** Messages sent between two round trips, so that neither side's buffer grows without bound. */
const burst = 5_000

export interface Server {
  readonly url: string
  readonly version: string
}

/** Starts a server on loopback in a new folder under `scratch`, and fills its stream. */
export const startFilledServer = async (
  scratch: string,
  onEnd: Settings["onEnd"],
): Promise<Server> => {
  const path = findBinary("nats-server", {})?.path
  if (!path) throw new Error("no nats-server (npm start fetches one)")
  const folder = join(scratch, "nats")
  await mkdir(folder)
  const flags = ["-js", "-sd", folder, "-a", "127.0.0.1", "-p", "-1", "--ports_file_dir", folder]
  const server = spawn(path, flags, { stdio: "ignore" })
  onEnd(() => stopServer(server))
  const url = await addressIn(folder)
  await fill(url)
  return { url, version: execFileSync(path, ["--version"], { encoding: "utf8" }).trim() }
}

/** Shuts a server down in an orderly way. */
export const stopServer = async (server: ChildProcess) => {
  if (server.exitCode !== null) return
  server.kill("SIGTERM")
  await once(server, "exit")
}

/** Reads the server's address from the file that it writes once it listens. */
export const addressIn = async (folder: string): Promise<string> => {
  const late = performance.now() + ready_wait_ms
  while (performance.now() < late) {
    const file = (await readdir(folder)).find((name) => name.endsWith(".ports"))
    if (file && existsSync(join(folder, file))) {
      const text = await readFile(join(folder, file), "utf8")
      if (text.endsWith("}")) return JSON.parse(text).nats[0]
    }
    await wait(poll_ms)
  }
  throw new Error(`nats-server did not listen within ${ready_wait_ms / 1000} s`)
}

const fill = async (url: string): Promise<void> => {
  const connection = await connect({ servers: url })
  const manager = await jetstreamManager(connection)
  await manager.streams.add(logStreamConfig({ stream }))
  for (let i = 0; i < messages; i++) {
    const { subject, commit } = commitOf(i)
    connection.publish(subject, JSON.stringify(commit))
    if (i % burst === 0) await connection.flush()
  }
  await connection.flush()
  const late = performance.now() + ready_wait_ms
  let stored = 0
  while (stored < messages && performance.now() < late) {
    stored = (await manager.streams.info(stream)).state.messages
    if (stored < messages) await wait(poll_ms)
  }
  await connection.close()
  if (stored !== messages) throw new Error(`the stream holds ${stored} of ${messages} messages`)
}
