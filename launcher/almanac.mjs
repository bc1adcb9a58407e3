#!/usr/bin/env node
/**
 * `./almanac <command>`: installs what is missing, then runs the program with the project's Node.
 */
import { spawn } from "node:child_process"
import { fileURLToPath } from "node:url"
import { bootstrapOrExit } from "./bootstrap.mjs"
import { programOf } from "./bundle.mjs"
import { compileCache } from "./cache.mjs"
import { projectNode } from "./packages.mjs"

const argv = process.argv.slice(2)

/**
 * Commands that start nats-server or restic, always or when no server runs. All others only call a
 * running server.
 */
const commands_with_programs = [
  "agent",
  "audit",
  "backfill-composite",
  "backup-state",
  "catalog",
  "compact",
  "demo",
  "doctor",
  "ingest",
  "log",
  "migrate",
  "rebuild",
  "restore-state",
  "secret",
  "token",
  "trust",
]
const names = (commands) => argv.some((word) => commands.includes(word))
const taskOf = () => {
  if (names(["serve", "cluster"])) return "start"
  return names(commands_with_programs) ? "command" : "client"
}
await bootstrapOrExit(taskOf())

const node = projectNode()
const args = [programOf("main.ts"), ...argv]
// Node caches compiled code there, so that the next start is faster.
process.env.NODE_COMPILE_CACHE ??= compileCache()

/** A shell sets the resource limits, because Node cannot. */
const shell = "/bin/sh"
const start = fileURLToPath(new URL("start.sh", import.meta.url))

/**
 * A guard process that stops the program if this process dies, even by SIGKILL. It reads a pipe
 * from this process: end-of-file means that this process died, a line that the program exited
 * first.
 */
const guard = `( read -r _ <&3 || kill $$ ) </dev/null >/dev/null 2>&1 &
exec ${shell} "$0" "$@" 3<&-`

/**
 * Fallback for a Node without execve: runs the program as a child, forwards signals to it, and
 * exits as the child did.
 */
const runAsChild = () => {
  const stdio = ["inherit", "inherit", "inherit", "pipe"]
  const child = spawn(shell, ["-c", guard, start, node, ...args], { stdio })
  const pipe = child.stdio[3]
  pipe.on("error", () => undefined)
  const signals = ["SIGTERM", "SIGHUP", "SIGINT"]
  for (const signal of signals) {
    process.on(signal, () => {
      // A terminal sends SIGINT to the child directly, and a second one means "stop now".
      if (signal !== "SIGINT" || !process.stdin.isTTY) child.kill(signal)
    })
  }
  child.on("error", (error) => {
    process.stderr.write(`almanac: cannot run ${node}: ${error.message}\n`)
    process.exit(1)
  })
  child.on("exit", (code, signal) => {
    pipe.write("ended\n")
    for (const name of signals) process.removeAllListeners(name)
    if (signal) process.kill(process.pid, signal)
    else process.exit(code)
  })
}

if (process.execve) process.execve(shell, [shell, start, node, ...args], process.env)
else runAsChild()
