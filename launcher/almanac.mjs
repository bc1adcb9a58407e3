#!/usr/bin/env node
/** `./almanac <verb>`: installs what is missing, then becomes the program on the project's Node. */
import { spawn } from "node:child_process"
import { fileURLToPath } from "node:url"
import { bootstrapOrExit } from "./bootstrap.mjs"
import { programOf } from "./bundle.mjs"
import { compileCache } from "./cache.mjs"
import { projectNode } from "./packages.mjs"

const words = process.argv.slice(2)
const is_server = words.includes("serve") || words.includes("cluster")
await bootstrapOrExit(is_server ? "start" : "command")

const node = projectNode()
const args = [programOf("main.ts"), ...words]
// Node keeps compiled code there, so that the next start is faster.
process.env.NODE_COMPILE_CACHE ??= compileCache()

/** By a shell, because Node cannot set these limits itself. */
const shell = "/bin/sh"
const start = fileURLToPath(new URL("start.sh", import.meta.url))

/**
 * A guard beside the program: stops it when this process is gone, even by SIGKILL. It waits for the
 * end of a pipe of ours, and does nothing after a line: the program ended first.
 */
const guard = `( read -r _ <&3 || kill $$ ) </dev/null >/dev/null 2>&1 &
exec ${shell} "$0" "$@" 3<&-`

/** On a Node without execve: a child that gets our signals and whose end is ours. */
const runAsChild = () => {
  const stdio = ["inherit", "inherit", "inherit", "pipe"]
  const child = spawn(shell, ["-c", guard, start, node, ...args], { stdio })
  const pipe = child.stdio[3]
  pipe.on("error", () => undefined)
  const signals = ["SIGTERM", "SIGHUP", "SIGINT"]
  for (const signal of signals) {
    process.on(signal, () => {
      // A terminal sends its interrupt to the child itself, and a second one means "now".
      if (signal !== "SIGINT" || !process.stdin.isTTY) child.kill(signal)
    })
  }
  child.on("error", (error) => {
    process.stderr.write(`almanac: ${node} does not run: ${error.message}\n`)
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
