/** A child process under a guard: what the program inherits, and what ends it. */
import assert from "node:assert/strict"
import { type ChildProcess, execFileSync, spawn } from "node:child_process"
import { once } from "node:events"
import { join } from "node:path"
import { text } from "node:stream/consumers"
import { afterAll, describe, it, vi } from "vitest"
import { spawnGuarded } from "../guarded-process.ts"

const soon = { timeout: 20_000, interval: 20 }
const pipes = { env: { GIVEN: "yes" }, stdio: ["pipe", "pipe", "pipe"] } as const
const parents: Array<ChildProcess> = []

afterAll(() => {
  for (const parent of parents) parent.kill("SIGKILL")
})

/** Ids of the processes in the program's group: the program and its guard. */
const groupOf = (pid: number) =>
  execFileSync("ps", ["-A", "-o", "pid=,pgid=,stat="], { encoding: "utf8" })
    .split("\n")
    .map((line) => line.trim().split(/\s+/))
    .filter(([, group, state]) => Number(group) === pid && !state?.startsWith("Z"))
    .map(([id]) => Number(id))

const gone = (pid: number) => vi.waitUntil(() => groupOf(pid).length === 0, soon)

/** Starts a process that runs `sh -c <script>` under a guard, and waits for both. */
const parentOf = async (script: string) => {
  const holder = join(import.meta.dirname, "hold-guarded.ts")
  const args = [holder, "/bin/sh", "-c", script]
  const parent = spawn(process.execPath, args, { stdio: ["ignore", "pipe", "inherit"] })
  parents.push(parent)
  const [line] = await once(parent.stdout, "data")
  const pid = Number(line)
  await vi.waitUntil(() => groupOf(pid).length >= 2, soon)
  return { parent, pid }
}

const killed = async (parent: ChildProcess) => {
  const ended = once(parent, "exit")
  parent.kill("SIGKILL")
  await ended
}

describe("a program under a guard", () => {
  it("has its own process id, streams, environment and exit code", async () => {
    const child = spawnGuarded("/bin/sh", ["-c", 'read -r x; echo "$$ $x $GIVEN"; exit 7'], pipes)
    assert(child.stdin && child.stdout)
    child.stdin.end("a b\n")
    const output = text(child.stdout)
    assert.deepEqual(await once(child, "close"), [7, null])
    assert.equal(await output, `${child.pid} a b yes\n`)
    await gone(child.pid ?? 0)
  })

  it("does not inherit the guard's pipe", async () => {
    const child = spawnGuarded("/bin/sh", ["-c", "( : <&3 ) 2>/dev/null || echo closed"], pipes)
    assert(child.stdout)
    assert.equal(await text(child.stdout), "closed\n")
  })

  it("ends by the signal that it gets", async () => {
    const child = spawnGuarded("/bin/sleep", ["60"], pipes)
    child.kill("SIGTERM")
    assert.deepEqual(await once(child, "close"), [null, "SIGTERM"])
    await gone(child.pid ?? 0)
  })

  it("has an error if it cannot be executed", async () => {
    const failure = async (program: string) => {
      const [error] = await once(spawnGuarded(program, [], pipes), "error")
      return error.code
    }
    assert.equal(await failure("/nowhere/program"), "ENOENT")
    assert.equal(await failure("/etc/passwd"), "EACCES")
  })

  it("gets SIGTERM when its parent is killed", async () => {
    const { parent, pid } = await parentOf("sleep 60 & trap 'kill $!' TERM; wait")
    await killed(parent)
    await gone(pid)
  })

  it("is killed with its group if it ignores SIGTERM", async () => {
    const { parent, pid } = await parentOf("trap '' TERM; sleep 60; sleep 60")
    await killed(parent)
    await gone(pid)
  }, 30_000)
})
