import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { describe, expect, it, vi } from "vitest"
import { makeCheckout, runNode, writeProgram } from "./checkout.ts"

/** A stand-in for the program: prints its arguments, and exits as the first one says. */
const main = `
import { readFileSync } from "node:fs"
const [command, ...rest]: Array<string> = process.argv.slice(2)
if (command === "serve") {
  for (const signal of ["SIGTERM", "SIGHUP", "SIGINT"]) {
    process.on(signal, () => {
      console.log(signal)
      if (signal === "SIGTERM") process.exit(0)
    })
  }
  setInterval(() => undefined, 1000)
  console.log("serving", process.pid)
} else if (command === "limits") {
  const { MALLOC_ARENA_MAX, NODE_OPTIONS } = process.env
  console.log(readFileSync("/proc/self/limits", "utf8"), { MALLOC_ARENA_MAX, NODE_OPTIONS })
} else if (command === "abort") {
  process.kill(process.pid, "SIGKILL")
} else {
  console.log(JSON.stringify(rest))
  process.exit(Number(command) || 0)
}`

/** Node before 22.15 has no execve, so the launcher keeps a child process. */
const without_execve = ["--import", "data:text/javascript,process.execve=undefined"]

const makeProgram = () => {
  const checkout = makeCheckout()
  writeFileSync(join(checkout.root, "main.ts"), main)
  return checkout
}

const isAlive = (pid: number) => {
  try {
    return process.kill(pid, 0)
  } catch {
    return false
  }
}

describe("a command that only calls a running server", () => {
  it("fetches no programs, packages for development or pages", async () => {
    const checkout = makeProgram()
    const { root, bin } = checkout
    for (const name of ["nats-server", "restic"]) rmSync(join(bin, name))
    for (const name of ["apt-get", "dpkg-deb"]) writeProgram(join(bin, name), "exit 9")
    mkdirSync(join(root, "web"))
    const first = await runNode(checkout, ["launcher/almanac.mjs", "predict", "leaf.jpg"]).ended
    expect(first.stdout).toBe('["leaf.jpg"]\n')
    expect(first.stderr).toMatch(/^almanac: installing [^\n]*\n$/)
    expect(readFileSync(join(root, "npm-ran"), "utf8")).not.toContain("--include=dev")
    // Now every program that fetches would fail.
    writeProgram(join(bin, "npm"), "exit 9")
    const second = await runNode(checkout, ["launcher/almanac.mjs", "predict", "leaf.jpg"]).ended
    expect(second).toMatchObject({ stdout: first.stdout, stderr: "" })
    const server = await runNode(checkout, ["launcher/almanac.mjs", "migrate"]).ended
    expect(server.stderr).toContain("nats-server")
  })
})

describe.each([
  { way: "becomes the program", options: [] },
  { way: "keeps the program as its child", options: without_execve },
])("the launcher that $way", ({ options }) => {
  const almanac = [...options, "launcher/almanac.mjs"]

  it("passes the arguments on and keeps the exit code", async () => {
    const ended = await runNode(makeProgram(), [...almanac, "7", "--a", "b c"]).ended
    expect(ended).toMatchObject({ code: 7, stdout: '["--a","b c"]\n' })
  })

  it("ends by the signal that ended the program", async () => {
    expect(await runNode(makeProgram(), [...almanac, "abort"]).ended).toMatchObject({
      code: null,
      signal: "SIGKILL",
    })
  })

  it.runIf(process.platform === "linux")("disables core dumps, and limits memory", async () => {
    const { stdout } = await runNode(makeProgram(), [...almanac, "limits"]).ended
    expect(stdout).toMatch(/^Max core file size +0 +0 /m)
    expect(stdout).toContain("MALLOC_ARENA_MAX: '2'")
    expect(stdout).toContain("--max-semi-space-size=8")
  })

  it("hands signals to the program and leaves none behind", async () => {
    const { child, ended, printed } = runNode(makeProgram(), [...almanac, "serve"])
    await vi.waitUntil(() => printed().includes("serving"), { timeout: 10_000 })
    child.kill("SIGHUP")
    await vi.waitUntil(() => printed().includes("SIGHUP"), { timeout: 10_000 })
    child.kill("SIGINT")
    await vi.waitUntil(() => printed().includes("SIGINT"), { timeout: 10_000 })
    child.kill("SIGTERM")
    const { code, stdout } = await ended
    expect(code).toBe(0)
    expect(stdout).toContain("SIGTERM")
    const pid = Number(/serving (\d+)/.exec(stdout)?.[1])
    expect(isAlive(pid)).toBe(false)
  })

  it("leaves no program behind where it is killed", async () => {
    const { child, ended, printed } = runNode(makeProgram(), [...almanac, "serve"])
    await vi.waitUntil(() => printed().includes("serving"), { timeout: 10_000 })
    child.kill("SIGKILL")
    const { stdout } = await ended
    const pid = Number(/serving (\d+)/.exec(stdout)?.[1])
    await vi.waitUntil(() => !isAlive(pid), { timeout: 10_000 })
  })

  it("keeps compiled code in the cache", async () => {
    const checkout = makeProgram()
    await runNode(checkout, [...almanac, "0"]).ended
    expect(existsSync(join(checkout.root, "cache", "compile"))).toBe(true)
  })
})
