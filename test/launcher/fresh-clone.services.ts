/**
 * Runs both commands as a new user would: in clones of HEAD with nothing installed. Uncommitted
 * changes are not tested. Takes a few minutes and downloads the packages more than once.
 */
import { execFileSync, spawnSync } from "node:child_process"
import { chownSync } from "node:fs"
import { join } from "node:path"
import { afterAll, describe, expect, it } from "vitest"
import {
  cleanUp,
  install_max_ms,
  makePlace,
  type Place,
  runCommand,
  stop,
  timeStart,
  untilReady,
} from "./fresh-clone.ts"

const installs = /almanac: (installing|fetching)/
/** Number of compared starts; the fastest counts, because other work runs in parallel. */
const rounds = 3
/** DECISIONS: a second `npm start` is ready within twice the time of the bare server's start. */
const start_ratio_max = 2
/** A user without any files. */
const nobody = 65_534

const is_root = process.getuid?.() === 0
const afterwards = { timeout: 120_000 }

// Deletes three installations of 520 MB.
afterAll(cleanUp, 300_000)

const lines = (text: string) => text.trim().split("\n").filter(Boolean)

const startAndStop = async (place: Place) => {
  const run = runCommand(place, "npm", ["start"])
  const { address } = await untilReady(run)
  const response = await fetch(`${address}/livez`)
  expect(response.status).toBe(200)
  expect(await stop(run)).toMatchObject({ left: [] })
  return run.printed
}

describe("a fresh clone with an empty home", { timeout: install_max_ms }, () => {
  const place = makePlace()

  it("installs, starts, answers, and stops without leaving a process", async () => {
    const { stdout, stderr } = await startAndStop(place)
    expect(stderr).toMatch(installs)
    expect(lines(stdout).filter((line) => line.startsWith("almanac ready "))).toHaveLength(1)
  })

  it("has nothing to install the second time", afterwards, async () => {
    expect((await startAndStop(place)).stderr).not.toMatch(installs)
  })

  it("is ready within twice the time of the bare server", afterwards, async () => {
    const node = join(place.clone, "node_modules", ".bin", "node")
    const bare: Array<number> = []
    const whole: Array<number> = []
    for (let round = 0; round < rounds; round++) {
      bare.push(await timeStart(place, node, ["main.ts", "serve"]))
      whole.push(await timeStart(place, "npm", ["start"]))
    }
    const [bare_ms, whole_ms] = [Math.min(...bare), Math.min(...whole)]
    console.log(`bare server ${bare_ms.toFixed()} ms, npm start ${whole_ms.toFixed()} ms`)
    expect(whole_ms / bare_ms).toBeLessThan(start_ratio_max)
  })

  it("exits with 0 when the server itself receives a stop signal", afterwards, async () => {
    const run = runCommand(place, "./almanac", ["serve"])
    await untilReady(run)
    expect(await stop(run)).toEqual({ code: 0, left: [] })
  })

  it("runs its tests with the other command", async () => {
    const run = runCommand(place, "npm", ["test", "--", "test/house/house.test.ts"])
    const code = await run.ended
    expect(run.printed.stdout).toContain("house.test.ts")
    expect(code, run.printed.stdout + run.printed.stderr).toBe(0)
  })

  it("prints --help of a command", afterwards, async () => {
    const run = runCommand(place, "./almanac", ["serve", "--help"])
    expect(await run.ended).toBe(0)
    expect(run.printed.stdout).toContain("serve")
  })

  it("has left the checkout as it was", () => {
    const status = execFileSync("git", ["status", "--porcelain"], { cwd: place.clone })
    expect(status.toString()).toBe("")
  })
})

describe.runIf(is_root)("a user without root and without a home", () => {
  it("installs and starts", { timeout: install_max_ms }, async () => {
    const place = makePlace()
    chownSync(join(place.clone, ".."), nobody, nobody)
    execFileSync("chown", ["-R", `${nobody}:${nobody}`, place.clone])
    const { stderr } = await startAndStop({
      ...place,
      environment: { ...place.environment, HOME: "/nonexistent" },
      before: ["setpriv", `--reuid=${nobody}`, `--regid=${nobody}`, "--clear-groups"],
    })
    expect(stderr).toMatch(installs)
  })
})

/** A separate network namespace with only loopback. */
const alone = ["unshare", "--net", "sh", "-c", 'ip link set lo up && exec "$@"', "sh"]
const can_be_alone = spawnSync(alone[0] ?? "", [...alone.slice(1), "true"]).status === 0

/** Fills the home's caches with one bootstrap, then deletes the packages. */
const fillCaches = ({ clone, environment }: Place) => {
  const options = { cwd: clone, env: environment, stdio: "ignore" } as const
  execFileSync("node", ["launcher/bootstrap.mjs", "start"], options)
  execFileSync("rm", ["-rf", "node_modules"], options)
}

describe("a machine without network", () => {
  it("installs and starts from full caches", { timeout: install_max_ms }, async () => {
    const place = makePlace()
    fillCaches(place)
    const offline = { npm_config_offline: "true", https_proxy: "http://[::1]:9" }
    const environment = can_be_alone ? place.environment : { ...place.environment, ...offline }
    const before = can_be_alone ? alone : []
    const run = runCommand({ ...place, environment, before }, "npm", ["start"])
    await untilReady(run)
    expect(run.printed.stderr).toMatch(/almanac: installing/)
    expect(run.printed.stderr).not.toMatch(/almanac: fetching/)
    expect(await stop(run)).toMatchObject({ left: [] })
  })
})
