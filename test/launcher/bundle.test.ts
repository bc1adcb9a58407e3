/**
 * The bundle: built from a checkout's sources, run instead of them, and unused when they change.
 */
import { execFileSync, spawn, spawnSync } from "node:child_process"
import { once } from "node:events"
import {
  cpSync,
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  utimesSync,
} from "node:fs"
import { tmpdir } from "node:os"
import { dirname, join } from "node:path"
import { createInterface } from "node:readline"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { childrenOf, until } from "../world/server/server.ts"

const checkout = dirname(dirname(import.meta.dirname))

const sources = [
  "actors",
  "adapters",
  "cli",
  "events",
  "gateway",
  "packages",
  "projections",
  "schemas",
  "server",
  "launcher",
  "main.ts",
  "nats.conf",
  "package.json",
  "package-lock.json",
]

const root = mkdtempSync(join(tmpdir(), "almanac-bundle-"))
const bundles = join(root, ".cache", "program")

const node = (...args: ReadonlyArray<string>) =>
  execFileSync(process.execPath, args, { cwd: root, encoding: "utf8" })

/** The program that the launcher would run. */
const program = () =>
  node(
    "--input-type=module",
    "-e",
    'import { programOf } from "./launcher/bundle.mjs"; console.log(programOf("main.ts"))',
  ).trim()

const run = (...args: ReadonlyArray<string>) => {
  const environment = { ...process.env, ALMANAC_DATA_DIR: join(root, "data") }
  const command = ["launcher/run.mjs", ...args]
  return spawnSync(process.execPath, command, { cwd: root, encoding: "utf8", env: environment })
}

beforeAll(() => {
  for (const name of sources) cpSync(join(checkout, name), join(root, name), { recursive: true })
  symlinkSync(join(checkout, "node_modules"), join(root, "node_modules"))
  node("launcher/bundle.mjs")
}, 60_000)

afterAll(() => rmSync(root, { recursive: true, force: true }))

const startServer = async () => {
  // With this flag Node refuses to run TypeScript, also in threads.
  const command = ["--no-experimental-strip-types", "launcher/run.mjs", "serve"]
  const server = spawn(process.execPath, command, {
    cwd: root,
    env: {
      ...process.env,
      ALMANAC_DATA_DIR: join(root, "data"),
      ALMANAC_API__BIND_HOST: "127.0.0.1",
      ALMANAC_API__BIND_PORT: "0",
    },
    stdio: ["ignore", "pipe", "ignore"],
  })
  for await (const line of createInterface(server.stdout)) {
    const [, url] = /^almanac ready (\S+)/.exec(line) ?? []
    if (url !== undefined) return { server, url }
  }
  throw new Error("the server ended before it was ready")
}

const commandOf = (pid: number) => {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, "utf8")
  } catch {
    return ""
  }
}

describe("the bundle", { timeout: 60_000 }, () => {
  it("is what runs while the sources are as they were", () => {
    expect(program()).toMatch(/\/\.cache\/program\/[\d-]+\/main\.js$/)
    expect(node("launcher/run.mjs", "--version")).toMatch(/almanac \d/)
  })

  it("says the same as the sources do", () => {
    const { stdout } = run("token", "--help")
    expect(stdout).toContain("almanac token")
    expect(stdout).toBe(node("main.ts", "token", "--help"))
    expect(run("--help").stdout).toBe(node("main.ts", "--help"))
  })

  it("loads native code without a warning from Node", () => {
    const { stdout, stderr } = run("plant", "leaf", "--out", join(root, "leaf.jpg"))
    expect({ stdout, stderr }).toEqual({
      stdout: `${join(root, "leaf.jpg")}: drew DemoOval___Rust\n`,
      stderr: "",
    })
  })

  it("has the programs of all threads and children", () => {
    const folder = dirname(program())
    const texts = readdirSync(folder).map((name) => readFileSync(join(folder, name), "utf8"))
    expect(texts.flatMap((text) => text.match(/new URL\("\.\/[^"]*\.ts"/g) ?? [])).toEqual([])
  })

  it("leaves no other file, when a command succeeds or fails", () => {
    const files = readdirSync(dirname(program()))
    expect(run("targets", "--help").status).toBe(0)
    expect(run("no-command").status).toBe(2)
    expect(readdirSync(dirname(program()))).toEqual(files)
  })

  it("serves: its threads and its agents find their files", async () => {
    const { server, url } = await startServer()
    try {
      const path = join(root, "data", "dev-credentials.json")
      const { blob, admin } = JSON.parse(readFileSync(path, "utf8"))
      const put = await fetch(new URL("/v1/blobs", url), {
        method: "PUT",
        headers: { authorization: `Bearer ${blob.token}`, "content-type": "application/json" },
        body: JSON.stringify({ data: Buffer.from("bundled").toString("base64") }),
      })
      expect(put.status).toBe(200)
      const audit = await fetch(new URL("/v1/admin/audit?limit=1", url), {
        headers: { authorization: `Bearer ${admin.token}` },
      })
      expect(audit.status).toBe(200)
      const agent = await until("an agent of the bundle", 30_000, () =>
        childrenOf(server.pid ?? 0)
          .map(commandOf)
          .find((command) => command.includes("agent-process")),
      )
      expect(agent).toMatch(/\.cache\/program\/[\d-]+\/agent-process\.js/)
    } finally {
      server.kill("SIGTERM")
      await once(server, "exit")
    }
  })

  it("is left for the sources when one of them changes", () => {
    utimesSync(join(root, "main.ts"), new Date(), new Date())
    expect(program()).toBe(join(root, "main.ts"))
    expect(existsSync(bundles)).toBe(true)
  })

  it("is made once for the same sources", () => {
    node("launcher/bundle.mjs")
    node("launcher/bundle.mjs")
    expect(readdirSync(bundles)).toHaveLength(2)
    expect(program()).toMatch(/main\.js$/)
  })
})
