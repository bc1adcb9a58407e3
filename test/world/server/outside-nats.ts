/** An external nats-server, as `nats.url` configures one. */
import { spawn } from "node:child_process"
import { readdirSync, readFileSync, rmSync } from "node:fs"
import { join } from "node:path"
import { findBinary } from "../../../launcher/binaries.mjs"
import { until } from "./server.ts"

const ready_ms_max = 30_000

/**
 * Starts a server with JetStream on this port of this machine, or a free one, with its files in
 * `folder`; `config` is a file with further settings.
 */
export const startNats = async (folder: string, port = "-1", config?: string) => {
  // A killed server leaves its ports file behind.
  for (const file of readdirSync(folder)) if (file.endsWith(".ports")) rmSync(join(folder, file))
  const binary = findBinary("nats-server")?.path ?? "nats-server"
  const flags = ["-js", "-sd", folder, "-a", "127.0.0.1", "-p", port, "--ports_file_dir", folder]
  if (config !== undefined) flags.push("-c", config)
  const child = spawn(binary, flags, { stdio: "ignore" })
  const ended = new Promise<void>((resolve, reject) => {
    child.on("error", reject)
    child.on("exit", () => resolve())
  })
  const url = await until("the outside nats-server", ready_ms_max, () => {
    const name = readdirSync(folder).find((file) => file.endsWith(".ports"))
    const text = name === undefined ? "" : readFileSync(join(folder, name), "utf8")
    return /"(nats:\/\/[^"]+)"/.exec(text)?.[1]
  })
  const stop = async () => {
    child.kill("SIGTERM")
    await ended
  }
  return { url, pid: child.pid ?? 0, stop }
}
