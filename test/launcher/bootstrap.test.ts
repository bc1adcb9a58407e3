import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { describe, expect, it } from "vitest"
import { lock, makeCheckout, runNode, writeProgram, writeVersioned } from "./checkout.ts"

const start = ["launcher/bootstrap.mjs", "start"]

const timesNpmRan = (root: string) =>
  readFileSync(join(root, "npm-ran"), "utf8").trim().split("\n").length

describe("the bootstrap", () => {
  it("installs the packages in one line, and then has nothing to do or to say", async () => {
    const checkout = makeCheckout()
    const first = await runNode(checkout, start).ended
    expect(first).toMatchObject({ code: 0, stdout: "" })
    expect(first.stderr).toMatch(
      /^almanac: installing Node 24 and the npm packages for serving[^\n]*\n$/,
    )
    const second = await runNode(checkout, start, { PATH: join(checkout.root, "bin") }).ended
    expect(second).toMatchObject({ code: 0, stdout: "", stderr: "" })
    expect(timesNpmRan(checkout.root)).toBe(1)
    expect(readFileSync(join(checkout.bin, "restic.asked"), "utf8")).toBe("asked\n")
  })

  it("takes what `npm install` has just installed for what it is", async () => {
    const checkout = makeCheckout()
    await runNode(checkout, start).ended
    rmSync(join(checkout.root, "node_modules", ".almanac-stamp"))
    expect(await runNode(checkout, start).ended).toMatchObject({ code: 0, stderr: "" })
    expect(timesNpmRan(checkout.root)).toBe(1)
  })

  it("installs again when the lockfile has changed, or a package is gone", async () => {
    const checkout = makeCheckout()
    await runNode(checkout, start).ended
    lock(checkout.root, "2.0.0")
    const { code, stderr } = await runNode(checkout, start).ended
    // The stand-in always installs 1.0.0, which does not match the lockfile.
    expect(code).toBe(1)
    expect(stderr).toContain("node_modules does not match package-lock.json")
    expect(timesNpmRan(checkout.root)).toBe(2)
  })

  it("installs the packages for development only for tests, and then keeps them", async () => {
    const versions = { "node_modules/a": { version: "1.0.0" } }
    const development = { "node_modules/t": { version: "1.0.0", dev: true } }
    const all = JSON.stringify({ packages: { ...versions, ...development } })
    const checkout = makeCheckout(
      () => `case "$*" in *--include=dev*)
        mkdir -p node_modules/t; echo '${all}' > node_modules/.package-lock.json ;;
      esac`,
    )
    const locked = { packages: { "": {}, ...versions, ...development } }
    writeFileSync(join(checkout.root, "package-lock.json"), JSON.stringify(locked))
    await runNode(checkout, start).ended
    await runNode(checkout, ["launcher/bootstrap.mjs", "check"]).ended
    expect(await runNode(checkout, start).ended).toMatchObject({ code: 0, stderr: "" })
    // As after an update of the checkout: a start must not remove what tests need.
    lock(checkout.root, "2.0.0")
    await runNode(checkout, start).ended
    const runs = readFileSync(join(checkout.root, "npm-ran"), "utf8").trim().split("\n")
    expect(runs).toEqual([
      expect.stringContaining("--omit=dev"),
      expect.stringContaining("--include=dev"),
      expect.stringContaining("--include=dev"),
    ])
  })

  it("prints npm's error and the next step when npm fails", async () => {
    const checkout = makeCheckout()
    writeProgram(join(checkout.bin, "npm"), "echo 'npm error code EAI_AGAIN' >&2; exit 3")
    const { code, stderr } = await runNode(checkout, start).ended
    expect(code).toBe(1)
    expect(stderr).toContain("almanac: npm error code EAI_AGAIN\n")
    expect(stderr).toContain("almanac: npm failed (exit code 3). Check the network")
  })

  it("runs npm once when two are started at the same moment", async () => {
    const checkout = makeCheckout()
    const both = [runNode(checkout, start), runNode(checkout, start)]
    const codes = await Promise.all(both.map(async ({ ended }) => (await ended).code))
    expect(codes).toEqual([0, 0])
    expect(timesNpmRan(checkout.root)).toBe(1)
    expect(existsSync(join(checkout.root, ".cache", "bootstrap.lock"))).toBe(false)
  })

  it.runIf(existsSync("/proc/self/stat"))("knows a process by its start too", async () => {
    const checkout = makeCheckout()
    mkdirSync(join(checkout.root, ".cache"))
    // This process is alive, but it did not start in the machine's first clock tick.
    writeFileSync(join(checkout.root, ".cache", "bootstrap.lock"), `${process.pid} 1`)
    expect(await runNode(checkout, start).ended).toMatchObject({ code: 0 })
  })

  it("takes over from one that was killed", async () => {
    const checkout = makeCheckout()
    const { child, ended } = runNode(checkout, ["-e", "setInterval(() => 0, 1000)"])
    const killed = child.pid
    child.kill("SIGKILL")
    await ended
    await runNode(checkout, start).ended
    lock(checkout.root, "1.0.0")
    rmSync(join(checkout.root, "node_modules"), { recursive: true })
    writeFileSync(join(checkout.root, ".cache", "bootstrap.lock"), `${killed} 12345`)
    expect(await runNode(checkout, start).ended).toMatchObject({ code: 0 })
  })
})

/** Debian's apt and dpkg, with one mirror that has only the newest suite. */
const addDebian = ({ root, bin }: ReturnType<typeof makeCheckout>) => {
  writeProgram(
    join(bin, "apt-get"),
    `echo "$@" >> ${root}/apt-ran
case "$*" in
  *--print-uris*) echo "'mirror://own/debian/dists/stable/InRelease' own 0" ;;
  *update*) /bin/cat "$(/usr/bin/dirname "$2")/sources/almanac.sources" >> ${root}/sources ;;
  *download*) for name; do :; done; : > "$name"_9.9.9_all.deb ;;
esac`,
  )
  writeProgram(
    join(bin, "dpkg-deb"),
    `mkdir -p "$3/usr/bin"
for name in nats-server restic; do
  case "$2" in */"$name"_*)
    printf '#!/bin/sh\\necho v9.9.9\\n' > "$3/usr/bin/$name" ;;
  esac
done`,
  )
}

/** The launcher's own conditions for using apt; without them these tests do not apply. */
const has_debian =
  existsSync("/usr/bin/apt-get") && existsSync("/usr/share/keyrings/debian-archive-keyring.gpg")

describe.runIf(has_debian)("a missing program", () => {
  it("comes from the machine's own Debian mirror, signed, into the cache", async () => {
    const checkout = makeCheckout()
    rmSync(join(checkout.bin, "nats-server"))
    addDebian(checkout)
    const { code, stderr } = await runNode(checkout, start).ended
    expect(code).toBe(0)
    expect(stderr).toContain("almanac: fetching nats-server from Debian's signed archive")
    expect(existsSync(join(checkout.root, "cache", "bin", "nats-server"))).toBe(true)
    const sources = readFileSync(join(checkout.root, "sources"), "utf8")
    expect(sources).toContain("URIs: mirror://own/debian\nSuites: sid\n")
    expect(sources).toMatch(/^Signed-By: .+debian-archive-keyring/m)
    expect(await runNode(checkout, start).ended).toMatchObject({ code: 0, stderr: "" })
  })

  it("that cannot be had stops the start with one line on what to install", async () => {
    const checkout = makeCheckout()
    writeVersioned(join(checkout.bin, "nats-server"), "2.9.10")
    writeProgram(join(checkout.bin, "apt-get"), "echo 'E: Unable to connect' >&2; exit 100")
    const { code, stderr } = await runNode(checkout, start).ended
    expect(code).toBe(1)
    const last = stderr.trim().split("\n").at(-1)
    expect(last).toMatch(/^almanac: nats-server 2\.15 or later is required/)
    expect(last).toContain("is 2.9.10, which is too old")
  })

  it("is skipped if it is restic, but not if everything is required", async () => {
    const checkout = makeCheckout()
    rmSync(join(checkout.bin, "restic"))
    writeProgram(join(checkout.bin, "apt-get"), "exit 100")
    const optional = await runNode(checkout, start).ended
    expect(optional.code).toBe(0)
    expect(optional.stderr).toContain("almanac: continuing without restic")
    const required = await runNode(checkout, start, { ALMANAC_REQUIRE_ALL: "1" }).ended
    expect(required.code).toBe(1)
  })

  it("is not looked for when the bus is outside", async () => {
    const checkout = makeCheckout()
    rmSync(join(checkout.bin, "nats-server"))
    writeProgram(join(checkout.bin, "apt-get"), "exit 100")
    const { code } = await runNode(checkout, start, { ALMANAC_NATS__URL: "nats://bus:4222" }).ended
    expect(code).toBe(0)
  })
})
