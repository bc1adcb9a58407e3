/** docs/guide-scale-out.md: its settings are valid, and its processes can start. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Effect, Redacted } from "effect"
import { afterAll, assert, describe, expect, it } from "vitest"
import { readSettings } from "#adapters/settings.ts"
import { roles } from "#schemas/settings.ts"
import { commandsIn, guideText, walk } from "./guide.ts"

const guide = guideText("guide-scale-out.md")
const folder = mkdtempSync(join(tmpdir(), "almanac-guide-"))
afterAll(() => rmSync(folder, { recursive: true }))

const settings = /^```toml\n# almanac\.toml\n([\s\S]*?)^```$/m.exec(guide)?.[1] ?? ""
const processes = [...guide.matchAll(/^\.\/almanac (serve|migrate) --config almanac\.toml (.*)$/gm)]

describe("docs/guide-scale-out.md", () => {
  it("creates secrets and shared settings with which every process can start", async () => {
    const made = commandsIn(guide).filter((block) => block.includes("openssl"))
    const { code, output } = await walk(folder, made, {})
    assert.equal(code, 0, output)
    const config = join(folder, "almanac.toml")
    const at = (path: string) => JSON.stringify(join(folder, path))
    const named = settings.replaceAll(/_file = "([^"]+)"/g, (_, path) => `_file = ${at(path)}`)
    expect(named).not.toBe(settings)
    writeFileSync(config, named)
    expect(processes.length).toBeGreaterThan(5)
    const done = new Set<string>()
    for (const [, verb, flags = ""] of processes) {
      const set = [...flags.matchAll(/--set (\S+)/g)].map(([, given]) => given ?? "")
      const read = await Effect.runPromise(readSettings({ config, set, env: {} }))
      if (verb === "serve") for (const role of read.settings.roles) done.add(role)
      expect(read.settings.audit.key_file).toBe(join(folder, "audit-key.pem"))
    }
    // Roles that need what this machine may not have appear only in the table.
    expect(roles.filter((role) => !done.has(role))).toEqual(["projections", "agent"])
    expect(readFileSync(join(folder, "audit-key.pem"), "utf8")).toContain("PRIVATE KEY")
  })

  it("puts read models into PostgreSQL with valid settings", async () => {
    const section = /^```toml\n(\[database\][\s\S]*?)^```$/m.exec(guide)?.[1] ?? ""
    const password = join(folder, "postgres-password")
    writeFileSync(password, "s3cret\n")
    const config = join(folder, "postgres.toml")
    writeFileSync(config, section.replace("postgres-password", password))
    const set = ["roles=projections", "nats.url=nats://10.0.0.1:4222"]
    const { settings } = await Effect.runPromise(readSettings({ config, set, env: {} }))
    expect(settings.database.connection).toMatch(/^postgresql:.*sslmode=verify-full/)
    expect(Redacted.value(settings.database.password)).toBe("s3cret")
  })

  it("describes every role", () => {
    for (const role of roles) expect(guide).toContain(`\n| \`${role}\``)
  })
})
