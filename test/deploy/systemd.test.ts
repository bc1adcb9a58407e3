/** The units of deploy/systemd, checked by systemd-analyze without booting them. */
import { spawnSync } from "node:child_process"
import { mkdirSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, expect, it } from "vitest"
import { cleanUp, newFolder } from "../world/server/server.ts"
import { textOf } from "./files.ts"

/**
 * Exposure out of 10. It was 1.2 at first: the unit has a network, and V8 executes generated code.
 */
const exposure_max = 1.5
/** It was 2.6 at first: the unit runs as root, to read files of other users. */
const exposure_of_root_max = 3

const has_systemd = spawnSync("systemd-analyze", ["--version"]).status === 0

describe.skipIf(!has_systemd)("the systemd units", () => {
  for (const unit of ["almanac.service", "almanac@.service", "almanac-backup.service"]) {
    const path = join("deploy/systemd", unit)
    it(`${unit} is understood, but for the program that is not installed here`, () => {
      const paths = [path, ...(unit.includes("backup") ? [path.replace("service", "timer")] : [])]
      const { stderr } = spawnSync("systemd-analyze", ["verify", ...paths], { encoding: "utf8" })
      const output = stderr.split("\n").filter((line) => line !== "")
      expect(output.filter((line) => !line.includes("/opt/almanac/almanac"))).toEqual([])
    })

    it(`${unit} exposes little`, () => {
      const args = ["security", "--offline=true", "--no-pager", path]
      const { stdout } = spawnSync("systemd-analyze", args, { encoding: "utf8" })
      const level = Number(/exposure level for \S+: ([\d.]+)/.exec(stdout)?.[1])
      expect(level).toBeLessThanOrEqual(
        unit.includes("backup") ? exposure_of_root_max : exposure_max,
      )
    })
  }

  it("are understood with the drop-in of a worker that mounts, which alone is root's", () => {
    const folder = newFolder()
    const unit = join(folder, "almanac@worker.service")
    mkdirSync(`${unit}.d`)
    writeFileSync(unit, textOf("systemd/almanac@.service"))
    writeFileSync(join(`${unit}.d`, "mounts.conf"), textOf("systemd/mounts.conf"))
    const { stderr } = spawnSync("systemd-analyze", ["verify", unit], { encoding: "utf8" })
    const output = stderr.split("\n").filter((line) => line !== "")
    expect(output.filter((line) => !line.includes("/opt/almanac/almanac"))).toEqual([])
    assert.include(textOf("systemd/mounts.conf"), "User=root")
    assert.notInclude(textOf("systemd/almanac@.service"), "User=root")
    return cleanUp()
  })

  it("back up the state of the server, to where they may write", () => {
    const server = textOf("systemd/almanac.service")
    const backup = textOf("systemd/almanac-backup.service")
    const [, to = "", config = ""] = /backup-state --to (\S+) --config (\S+)/.exec(backup) ?? []
    assert.include(server, `serve --config ${config}\n`)
    const written = /^ReadWritePaths=(.+)$/m.exec(backup)?.[1]?.split(" ")
    const [, state] = /^StateDirectory=(.+)$/m.exec(server) ?? []
    expect(written).toEqual([`/var/lib/private/${state}`, to])
    assert.include(backup, `ALMANAC_DATA_DIR=/var/lib/${state} `)
    const guide = readFileSync("docs/guide-deploy.md", "utf8")
    assert.include(guide, `install -d -m 0700 ${to}\n`)
    // Without the server's cache, root would download its own programs, and doctor would check
    // those.
    const [, variables] = /^Environment=(.+) NODE_ENV=production$/m.exec(backup) ?? []
    assert.include(guide, `sudo env ${variables} /opt/almanac/almanac doctor --config ${config}\n`)
  })

  it("are the same but for their names", () => {
    const body = (unit: string) => {
      const text = textOf(`systemd/${unit}`)
      return text
        .slice(text.indexOf("[Service]"))
        .replaceAll("%i.toml", "almanac.toml")
        .replaceAll("almanac-%i", "almanac")
        .replaceAll("almanac@<name>", "almanac")
    }
    expect(body("almanac@.service")).toBe(body("almanac.service"))
    assert.include(body("almanac.service"), "LimitCORE=0")
  })
})
