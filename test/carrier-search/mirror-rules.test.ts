/** Which rows of FMCSA's files become carriers. Source: market facts B1.4 and B2. */
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterEach, beforeEach, describe, expect, it } from "vitest"
import {
  carriersIn,
  type Given,
  importTexts,
  legacy_head,
  legacyFile,
  motus_head,
  motusFile,
} from "./mirror-given.ts"

let folder: string
let path: string
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "almanac-mirror-"))
  path = join(folder, "carriers.sqlite")
})
afterEach(() => rmSync(folder, { recursive: true, force: true }))

/** The carriers of these files. */
const carriersOf = async (given: Given) => {
  await importTexts(path, given)
  return carriersIn(path)
}

const ofLegacy = (...rows: ReadonlyArray<string>) => carriersOf({ "l.csv": legacyFile(...rows) })
const ofMotus = (...rows: ReadonlyArray<string>) => carriersOf({ "m.csv": motusFile(...rows) })

const found = ["MC 77, USDOT 5: X"]

describe("a row of legacy", () => {
  for (const [common, contract, broker, is_shown] of [
    ["A", "N", "N", true],
    ["N", "A", "N", true],
    ["A", "A", "I", true],
    ["a", "n", "n", true],
    ["A", "", "N", true],
    ["A", "A", "A", false],
    ["A", "N", "A", false],
    ["I", "N", "N", false],
    ["I", "I", "A", false],
    ["N", "N", "N", false],
  ] as const) {
    it(`with common ${common}, contract ${contract}, broker ${broker}: ${is_shown}`, async () => {
      const carriers = await ofLegacy(`MC77,5,${common},${contract},${broker},X`, "MC1,1,I,I,N,Y")
      expect(carriers).toEqual(is_shown ? found : [])
    })
  }

  for (const docket of ["MC77", "MC0000000077", "mc77", "MC-77", " MC77 "]) {
    it(`is of docket 77 where it says "${docket}"`, async () => {
      expect(await ofLegacy(`${docket},00000005,A,N,N,X`)).toEqual(found)
    })
  }

  for (const docket of ["FF77", "MX77", "P77", "MCX77", "FF-77"]) {
    it(`is passed over where its docket is ${docket}`, async () => {
      const rows = legacyFile(`${docket},5,A,N,N,X`, "MC1,1,A,N,N,Y")
      const { files, numbers } = await importTexts(path, { "l.csv": rows })
      expect(carriersIn(path)).toEqual(["MC 1, USDOT 1: Y"])
      expect(files[0]).toMatchObject({ other: 1, rejected: [] })
      expect(numbers).toBe(1)
    })
  }

  it("may be of the largest docket and USDOT number", async () => {
    expect(await ofLegacy("MC99999999,199999999,A,N,N,X")).toEqual([
      "MC 99999999, USDOT 199999999: X",
    ])
  })

  it("needs no USDOT number: what it says is its own", async () => {
    expect(await ofLegacy("MC77,,A,N,N,X", "MC78,00000000,A,N,N,Y")).toEqual([
      "MC 77, USDOT 0: X",
      "MC 78, USDOT 0: Y",
    ])
  })

  it("is one of several carriers with its docket", async () => {
    expect(await ofLegacy("MC77,9,A,N,N,Z", "MC77,5,A,N,N,X", "MC77,7,A,N,A,B")).toEqual([
      "MC 77, USDOT 5: X",
      "MC 77, USDOT 9: Z",
    ])
  })

  it("that comes twice counts once, with the later name", async () => {
    expect(await ofLegacy("MC77,5,A,N,N,OLD", "MC77,5,N,A,N,X")).toEqual(found)
    expect(await ofLegacy("MC77,5,A,N,N,X", "MC77,5,I,N,N,OLD")).toEqual(found)
  })

  it("of a broker drops its carrier, before or after it", async () => {
    const [carrier, broker] = ["MC77,5,A,N,N,X", "MC77,5,I,N,A,X"]
    expect(await ofLegacy(carrier, broker)).toEqual([])
    expect(await ofLegacy(broker, carrier)).toEqual([])
  })
})

describe("a row of Motus", () => {
  for (const [type, status, is_shown] of [
    ["Motor Carrier of Property", "Active", true],
    ["Motor Carrier of Household Goods", "active", true],
    ["Enterprise Motor Carrier", "Active", true],
    ["Mexico Domiciled Motor Carrier of Property", "Active", true],
    ["Motor Carrier of Property", "Pending", false],
    ["Motor Carrier of Property", "Inactive", false],
    ["Motor Carrier of Property", "Withdrawn", false],
    ["Broker of Property", "Active", false],
    ["Freight Forwarder of Property", "Active", false],
    ["Something Else", "Active", false],
  ] as const) {
    it(`of ${type} that is ${status}: ${is_shown}`, async () => {
      expect(await ofMotus(`MC0000000077,5,${type},${status},X`)).toEqual(is_shown ? found : [])
    })
  }

  const carrier = "MC77,5,Motor Carrier of Property,Active,X"
  for (const [title, other, is_shown] of [
    ["an active broker under the same docket", "MC77,5,Broker of Property,Active,X", false],
    ["an active broker under another docket", "MC78,5,Broker of Property,Active,X", false],
    ["an active forwarder under FF", "FF78,5,Freight Forwarder,Active,X", false],
    ["an active broker without a docket", ",5,Broker of Property,Active,X", false],
    ["a broker that is pending", "MC78,5,Broker of Property,Pending,X", true],
    ["a broker that was one", "MC78,5,Broker of Property,Inactive,X", true],
    ["a broker of another USDOT number", "MC77,6,Broker of Property,Active,Y", true],
    ["an authority that it lost", "MC77,5,Motor Carrier of Property,Inactive,X", true],
  ] as const) {
    it(`together with ${title}: ${is_shown}, in either order`, async () => {
      expect(await ofMotus(carrier, other)).toEqual(is_shown ? found : [])
      expect(await ofMotus(other, carrier)).toEqual(is_shown ? found : [])
    })
  }

  it("counts across several files", async () => {
    const broker = motusFile("MC78,5,Broker of Property,Active,X")
    expect(await carriersOf({ "1.csv": motusFile(carrier), "2.csv": broker })).toEqual([])
  })
})

describe("a docket in both files", () => {
  const old = legacyFile("MC77,5,A,N,N,OLD", "MC80,6,A,N,N,KEPT")

  for (const [title, row, expected] of [
    ["is Motus's", "MC77,5,Motor Carrier of Property,Active,X", found],
    ["is gone where Motus has it inactive", "MC77,5,Motor Carrier of Property,Inactive,X", []],
    ["is gone where Motus has its USDOT number elsewhere", "MC99,5,Broker,Active,X", []],
    ["is gone where Motus has its USDOT number without a docket", ",5,,Pending,X", []],
    ["is legacy's where Motus has another", "MC77,8,Broker,Active,X", ["MC 77, USDOT 5: OLD"]],
  ] as const) {
    it(`${title}, in either order of the files`, async () => {
      const all = [...expected, "MC 80, USDOT 6: KEPT"]
      const motus = motusFile(row)
      expect(await carriersOf({ "l.csv": old, "m.csv": motus })).toEqual(all)
      expect(await carriersOf({ "m.csv": motus, "l.csv": old })).toEqual(all)
    })
  }

  it("is reported as superseded, and its number once", async () => {
    const motus = motusFile("MC77,5,Motor Carrier of Property,Active,X")
    const report = await importTexts(path, { "l.csv": old, "m.csv": motus })
    expect(report.numbers).toBe(2)
    expect(report.carriers).toBe(2)
    expect(report.files.map(({ kind, superseded }) => [kind, superseded])).toEqual([
      ["motus", 0],
      ["legacy", 1],
    ])
  })
})

describe("a row that cannot be used", () => {
  const good = "MC77,5,A,N,N,X"
  const good_motus = "MC77,5,Motor Carrier of Property,Active,X"
  for (const [problem, row] of [
    ["a different number of cells than the header, or unbalanced quotes", "MC78,5,A,N"],
    ["a different number of cells than the header, or unbalanced quotes", "MC78,5,A,N,N,X,Y"],
    ["a different number of cells than the header, or unbalanced quotes", 'MC78,5,A,N,N,"X"Y'],
    ["no docket number", ",5,A,N,N,X"],
    ["no docket number", "78,5,A,N,N,X"],
    ["no docket number", "MC,5,A,N,N,X"],
    ["no docket number", "MC0,5,A,N,N,X"],
    ["no docket number", "MC100000000,5,A,N,N,X"],
    ["no docket number", "MC78A,5,A,N,N,X"],
    ["no USDOT number", "MC78,5x,A,N,N,X"],
    ["no USDOT number", "MC78,200000000,A,N,N,X"],
    ["no status", "MC78,5,A,N,,X"],
    ["no status", "MC78,5,ACTIVE,N,N,X"],
    ["no status", "MC78,5,1,N,N,X"],
    ["a name that is too long", `MC78,5,A,N,N,${"x".repeat(1001)}`],
  ] as const) {
    it(`is reported as one with ${problem}: ${row.slice(0, 30)}`, async () => {
      const report = await importTexts(path, { "l.csv": legacyFile(good, row, row) })
      expect(report.files[0]?.rejected).toEqual([{ problem, rows: 2, first: 3 }])
      expect(report.files[0]?.rows).toBe(3)
      expect(carriersIn(path)).toEqual(found)
    })
  }

  for (const [problem, row] of [
    ["no docket number", ",6,Motor Carrier of Property,Active,X"],
    ["no USDOT number", "MC78,,Motor Carrier of Property,Active,X"],
    ["no USDOT number", "MC78,0,Motor Carrier of Property,Active,X"],
    ["no status", "MC78,6,Motor Carrier of Property,,X"],
    ["a name that is too long", `MC78,6,Motor Carrier,Active,${"x".repeat(1001)}`],
  ] as const) {
    it(`of Motus is reported as one with ${problem}: ${row.slice(0, 30)}`, async () => {
      const report = await importTexts(path, { "m.csv": motusFile(good_motus, row) })
      expect(report.files[0]?.rejected).toEqual([{ problem, rows: 1, first: 3 }])
      expect(carriersIn(path)).toEqual(found)
    })
  }

  it("is none where Motus has an application without a docket, or a row is blank", async () => {
    const rows = [",6,Motor Carrier of Property,Pending,X", "", ",,,,", "  ", good_motus]
    const report = await importTexts(path, { "m.csv": motusFile(...rows) })
    expect(report.files[0]).toMatchObject({ rows: 2, rejected: [] })
    expect(carriersIn(path)).toEqual(found)
  })
})

describe("a name", () => {
  const nameOf = async (cell: Buffer) => {
    const row = Buffer.concat([Buffer.from(`${legacy_head}\nMC77,5,A,N,N,`), cell])
    await importTexts(path, { "l.csv": row })
    return carriersIn(path)[0]?.slice("MC 77, USDOT 5: ".length)
  }
  for (const [title, cell, name] of [
    ["with a comma", '"SMITH, SONS"', "SMITH, SONS"],
    ["with quotes", '"THE ""BEST"" CO"', 'THE "BEST" CO'],
    ["with a quote in its middle", 'JOE "BIG" X', 'JOE "BIG" X'],
    ["with a line break", '"TWO\r\nLINES"', "TWO\r\nLINES"],
    ["with spaces around it", "  WIDE  ", "WIDE"],
    ["with spaces in its quotes", '"  WIDE  "', "WIDE"],
    ["before a CRLF", "PLAIN\r\n", "PLAIN"],
    ["in quotes before a CRLF", '"A, B"\r\n', "A, B"],
    ["beyond ASCII", "ÅKERI 運送", "ÅKERI 運送"],
    ["with a NUL", "A\0B", "AB"],
    ["that is empty", "", ""],
  ] as const) {
    it(title, async () => {
      expect(await nameOf(Buffer.from(cell))).toBe(name)
    })
  }

  it("of Windows, in bytes that are no UTF-8", async () => {
    expect(await nameOf(Buffer.from([0x4d, 0xd8, 0x4c, 0x4c, 0x45, 0x52, 0x92, 0x53]))).toBe(
      "MØLLER’S",
    )
  })
})

describe("a header", () => {
  it("may have other columns, another order, capitals, spaces, quotes and a mark", async () => {
    const head = '\uFEFF"Legal Name",X,"BROKER_STAT",Common_Stat,contract stat,DOT_NUMBER'
    const rows = `${head},Docket_Number\r\n"X",?,N,A,N,5,MC77\r\n`
    expect(await carriersOf({ "l.csv": rows })).toEqual(found)
  })

  it("of Motus is identified by its columns", async () => {
    const head = motus_head.split(",").toReversed().join(",")
    const rows = `${head},filler\nX,Active,Motor Carrier,5,MC77,\n`
    const report = await importTexts(path, { "some.csv": rows })
    expect(report.files[0]?.kind).toBe("motus")
    expect(carriersIn(path)).toEqual(found)
  })

  for (const [title, text, message] of [
    [
      "misses columns of legacy",
      "docket_number,dot_number,common_stat,contract_stat\nMC1,1,A,N\n",
      "f.csv is neither FMCSA's legacy file nor a Motus file; " +
        "the closest match is legacy: legal_name, broker_stat are missing",
    ],
    [
      "misses a column of Motus",
      `${motus_head.replace("op_auth_status", "status")}\nMC1,1,A,N,X\n`,
      "f.csv is neither FMCSA's legacy file nor a Motus file; " +
        "the closest match is motus: op_auth_status are missing",
    ],
    ["is missing", "", "f.csv is empty"],
    ["has no rows below it", `${legacy_head}\n\n`, "f.csv has a header and no rows"],
  ] as const) {
    it(`that ${title} ends the import, and the mirror stays`, async () => {
      await importTexts(path, { "l.csv": legacyFile("MC77,5,A,N,N,X") })
      const bad = importTexts(path, { "l.csv": legacyFile("MC1,1,A,N,N,Y"), "f.csv": text })
      await expect(bad).rejects.toThrow(message)
      expect(carriersIn(path)).toEqual(found)
    })
  }
})
