/** `almanac carriers`: output and exit codes, kills and repeats, and concurrent searches. */
import { mkdirSync, readdirSync, readFileSync, utimesSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { gzipSync } from "node:zlib"
import Sqlite from "better-sqlite3"
import { afterAll, beforeEach, describe, expect, it } from "vitest"
import { openMirror } from "#adapters/carrier-search/mirror-file.ts"
import { import_mb_max, killImports, type MirrorRound } from "../process/kill/mirror-kill.ts"
import { cleanUp, newFolder, runVerb } from "../world/server/server.ts"
import { carriersIn, importTexts, legacyFile, motusFile } from "./mirror-given.ts"

afterAll(cleanUp)
let folder: string
let path: string
beforeEach(() => {
  folder = newFolder()
  path = join(folder, "carriers.sqlite")
})

/** Writes a file next to the mirror. */
const given = (name: string, text: string | Buffer) => {
  const file = join(folder, name)
  writeFileSync(file, text)
  return file
}
const carriers = (...words: ReadonlyArray<string>) => runVerb(folder, ["carriers", ...words])

const legacy = legacyFile("MC77,5,A,N,N,OLD", 'MC80,6,A,N,N,"KEPT, INC"', "MC81,7,I,N,N,GONE")
const motus = motusFile("MC77,5,Motor Carrier of Property,Active,NEW")
const merged = ["MC 77, USDOT 5: NEW", "MC 80, USDOT 6: KEPT, INC"]

const mirror = () => {
  const { file, mirror } = openMirror(path)
  file.close()
  return mirror
}

describe("carriers import", () => {
  it("makes a mirror of both files, packed or not, and says of what age", async () => {
    const files = [given("l.csv", legacy), given("m.csv.gz", gzipSync(motus))]
    utimesSync(files[1] ?? "", new Date("2026-11-19T10:00:00Z"), new Date("2026-11-19T10:00:00Z"))
    const { code, stdout, stderr } = await carriers("import", ...files)
    expect(stderr.split("\n").map((line) => line.slice(0, 8))).toEqual(["m.csv.gz", "l.csv (l", ""])
    expect(code).toBe(0)
    expect(stdout.split("\n")).toEqual([
      "m.csv.gz (motus, as of 2026-11-19): 1 row, 1 for active carriers",
      "l.csv (legacy, as of 2026-05-14): 3 rows, 1 for active carriers, 1 superseded by Motus",
      `The mirror has 3 MC numbers and 2 active carriers: ${path}`,
      "",
    ])
    expect(carriersIn(path)).toEqual(merged)
    expect(readdirSync(folder).filter((name) => name.includes("importing"))).toEqual([])
    const status = await carriers("status")
    expect(status.code).toBe(0)
    expect(status.stdout).toMatch(
      /3 MC numbers, 2 active carriers[\s\S]*motus, as of 2026-11-19: 1 row of/,
    )
  })

  it("loses no carrier whose USDOT number is not known", async () => {
    const rows = [
      ...["MC000119,,A,N,N,ALPHA TRUCKING", "MC000119,,A,N,N,BETA HAULING"],
      ...["MC000120,,A,N,N,CARRIER CO", "MC000120,,N,N,A,OTHER BROKER"],
    ]
    const file = given("legacy.csv", legacyFile(...rows))
    for (const time of ["first", "second"]) {
      const { code, stdout } = await carriers("import", file)
      expect(code, time).toBe(0)
      expect(stdout).toMatch(/4 rows, 3 for active carriers\n/)
      expect(stdout).toMatch(/The mirror has 2 MC numbers and 3 active carriers/)
    }
    expect(mirror()).toMatchObject({ numbers: 2, carriers: 3 })
  })

  it("is the same when it is repeated", async () => {
    const files = [given("l.csv", legacy), given("m.csv", motus)]
    await carriers("import", ...files)
    const first = readFileSync(path)
    const { imported_at } = mirror()
    const { code } = await carriers("import", ...files.toReversed())
    expect(code).toBe(0)
    // Identical except for the import time.
    const patched = readFileSync(path)
    patched.write(imported_at, patched.indexOf(mirror().imported_at))
    expect(patched.equals(first)).toBe(true)
  })

  it("dates Motus by --as-of, and legacy by its last day", async () => {
    const files = [given("l.csv", legacy), given("m.csv", motus)]
    const { stdout } = await carriers("import", ...files, "--as-of", "2026-11-01")
    expect(stdout).toMatch(/motus, as of 2026-11-01/)
    expect(stdout).toMatch(/legacy, as of 2026-05-14/)
  })

  it("reports the carriers that a missing file would add", async () => {
    const without_motus = await carriers("import", given("l.csv", legacy))
    expect(without_motus.stdout).toMatch(
      /Without the Motus file, the mirror lacks all carriers since May 2026/,
    )
    const without_legacy = await carriers("import", given("m.csv", motus))
    expect(without_legacy.stdout).toMatch(/Without the legacy file, the mirror lacks most carriers/)
  })

  it("ends with 2 if rows were rejected, and lists their problems", async () => {
    const { code, stdout, stderr } = await carriers(
      "import",
      given("l.csv", `${legacy}MC9,1,A\nX,1,A,N,N,Y\n`),
    )
    expect(code).toBe(2)
    expect(stderr).toMatch(/almanac: 2 rows could not be imported/)
    expect(stdout).toMatch(/unusable: 1 row with a different number of cells .* first in line 5/)
    expect(stdout).toMatch(/unusable: 1 row with no docket number, first in line 6/)
    expect(carriersIn(path)).toHaveLength(2)
  })

  for (const [title, name, bytes, message] of [
    ["is missing", undefined, "", /nowhere\.csv.*no such file|no such file.*nowhere\.csv/],
    ["has other columns", "x.csv", "a,b\n1,2\n", /x\.csv is neither .* are missing/],
    [
      "is packed and cut off",
      "x.csv.gz",
      gzipSync(legacy).subarray(0, 60),
      /x\.csv\.gz: unexpected end/,
    ],
    ["is packed and damaged", "x.csv.gz", gzipSync(legacy).fill(7, 20, 40), /x\.csv\.gz: /],
  ] as const) {
    it(`ends with 1 where a file ${title}, and leaves the mirror as it is`, async () => {
      await importTexts(path, { "l.csv": legacyFile("MC1,1,A,N,N,BEFORE") })
      const file = name === undefined ? join(folder, "nowhere.csv") : given(name, bytes)
      const { code, stdout, stderr } = await carriers("import", given("l.csv", legacy), file)
      expect(stdout).toBe("")
      expect(stderr).toMatch(/almanac: nothing was imported: /)
      expect(stderr).toMatch(message)
      expect(code).toBe(1)
      expect(carriersIn(path)).toEqual(["MC 1, USDOT 1: BEFORE"])
      expect(readdirSync(folder).filter((left) => left.includes("importing"))).toEqual([])
    })
  }

  it("needs files, or --demo, and not both", async () => {
    expect((await carriers("import")).stderr).toMatch(/name the files, or use --demo/)
    const both = await carriers("import", "--demo", given("l.csv", legacy))
    expect(both.stderr).toMatch(/--demo generates all carriers and excludes files/)
    expect(both.code).toBe(1)
  })

  it("--demo makes the same carriers each time, whose names say so", async () => {
    const { code, stdout } = await carriers("import", "--demo")
    expect(code).toBe(0)
    expect(stdout).toMatch(/These carriers are generated\. None of them exists/)
    const names = carriersIn(path)
    expect(names.length).toBeGreaterThan(20_000)
    expect(names.filter((name) => !/: DEMO /.test(name))).toEqual([])
    expect(mirror()).toMatchObject({ is_demo: true, numbers: 60_000 })
    await carriers("import", "--demo")
    expect(carriersIn(path)).toEqual(names)
    expect((await carriers("import", given("l.csv", legacy))).code).toBe(0)
    expect(mirror().is_demo).toBe(false)
  })

  it("--demo never replaces carriers that exist, nor a file that is something else", async () => {
    await importTexts(path, { "l.csv": legacy })
    const refused = await carriers("import", "--demo")
    expect(refused.code).toBe(1)
    expect(refused.stderr).toMatch(/has real carriers; remove it first/)
    expect(carriersIn(path)).toHaveLength(2)
    writeFileSync(path, "my own notes")
    expect((await carriers("import", "--demo")).stderr).toMatch(/exists and is not a demo mirror/)
    expect(readFileSync(path, "utf8")).toBe("my own notes")
  })

  it("is refused while another one runs, and not by one that has ended", async () => {
    const other = new Sqlite(`${path}.lock`)
    other.pragma("locking_mode = exclusive")
    other.exec("begin exclusive")
    const file = given("l.csv", legacy)
    const { code, stderr } = await carriers("import", file)
    expect(code).toBe(1)
    expect(stderr).toMatch(/another import into this mirror is running; retry when it has finished/)
    other.close()
    expect((await carriers("import", file)).code).toBe(0)
  })

  it("that is interrupted leaves the mirror unchanged, and no file behind", async () => {
    await importTexts(path, { "l.csv": legacy })
    const stop = new AbortController()
    const stopped = importTexts(
      path,
      { "m.csv": motus, "l.csv": legacyFile("MC1,1,A,N,N,X") },
      { signal: stop.signal, onFile: () => stop.abort(new Error("stopped")) },
    )
    await expect(stopped).rejects.toThrow("stopped")
    expect(carriersIn(path)).toEqual(["MC 77, USDOT 5: OLD", "MC 80, USDOT 6: KEPT, INC"])
    expect(readdirSync(folder).filter((left) => left.includes("importing"))).toEqual([])
  })

  it("shows help with an example", async () => {
    const { stdout } = await carriers("import", "--help")
    expect(stdout).toMatch(/almanac carriers import legacy\.csv motus\.csv --as-of/)
    expect(stdout).toMatch(/exit code 0, 2 if some rows/)
  })

  it("killed at random moments and repeated makes the same mirror", async () => {
    const rounds: Array<MirrorRound> = []
    const kills = join(folder, "kills")
    mkdirSync(kills)
    const { held_mb, carriers } = await killImports({
      folder: kills,
      seed: 20_261_122,
      rows: 200_000,
      rounds: 3,
      onRound: (round) => rounds.push(round),
    })
    expect(rounds).toHaveLength(3)
    expect(carriers).toBeGreaterThan(100_000)
    expect(held_mb).toBeLessThan(import_mb_max)
  })
})

describe("carriers status", () => {
  it("ends with 1 where there is no mirror", async () => {
    const { code, stderr } = await carriers("status")
    expect(code).toBe(1)
    expect(stderr).toMatch(/no mirror exists yet; fill it with `almanac carriers import`/)
  })
})
