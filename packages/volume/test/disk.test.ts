/** The volume's requirements on its disk, met by the real one and by the simulated one. */
import assert from "node:assert/strict"
import { spawnSync } from "node:child_process"
import { mkdtempSync, rmSync, statSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, describe, it } from "vitest"
import { noise } from "../../../test/contract/blob-storage/engine-bytes.ts"
import { seeded } from "../../../test/world/seeded.ts"
import { type VolumeDisk, volumeDisk } from "../disk.ts"
import { simulateDisk } from "./simulated/disk.ts"

const folder = mkdtempSync(join(tmpdir(), "almanac-disk-"))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

const hasCode = (code: string) => (cause: unknown) =>
  cause instanceof Error && "code" in cause && cause.code === code

const files = (disk: VolumeDisk, dir: string) => {
  it("reads what was written, in parts and overlapping", async () => {
    await disk.makeFolder(dir)
    const file = await disk.create(join(dir, "parts"))
    const bytes = noise(1, 300_000)
    const cuts = [0, 1, 5000, 5000, 70_000, 300_000]
    await file.write(
      cuts.map((cut, index) => bytes.subarray(cuts[index - 1] ?? 0, cut)),
      0,
    )
    await file.write([noise(2, 1000), noise(3, 500)], 4096)
    await file.write([], 7)
    bytes.set(noise(2, 1000), 4096)
    bytes.set(noise(3, 500), 5096)
    await file.datasync()
    assert.equal(await file.size(), bytes.length)
    assert(Buffer.from(await file.read(0, 300_000)).equals(bytes))
    assert(Buffer.from(file.readSync(4000, 3000)).equals(bytes.subarray(4000, 7000)))
    await file.close()
  })

  it("writes more parts than fit in one call", async () => {
    const file = await disk.create(join(dir, "many"))
    const bytes = noise(4, 25_000)
    const parts = Array.from({ length: 2500 }, (_, n) => bytes.subarray(n * 10, n * 10 + 10))
    await file.write(parts, 123)
    assert(Buffer.from(await file.read(123, 25_000)).equals(bytes))
    assert.deepEqual(new Uint8Array(await file.read(0, 123)), new Uint8Array(123))
    await file.close()
  })

  it("reads fewer bytes at the end of a file, also into a given buffer", async () => {
    const file = await disk.create(join(dir, "short"))
    await file.write([noise(5, 100)], 0)
    const into = new Uint8Array(200).fill(9)
    const read = await file.read(60, 100, into)
    assert.equal(read.buffer, into.buffer)
    assert(Buffer.from(read).equals(noise(5, 100).subarray(60)))
    assert(into.subarray(40).every((byte) => byte === 9))
    assert.equal((await file.read(100, 10)).length, 0)
    assert.equal(file.readSync(95, 10).length, 5)
    await file.close()
  })
}

const closed = (disk: VolumeDisk, dir: string) => {
  it("never uses a closed file, whose descriptor may belong to another", async () => {
    const file = await disk.create(join(dir, "closed"))
    await file.close()
    const other = await disk.create(join(dir, "other-file"))
    await other.write([noise(8, 10)], 0)
    const uses = [() => file.read(0, 10), () => file.write([noise(9, 10)], 0), file.datasync]
    for (const use of [...uses, file.close]) await assert.rejects(use, hasCode("EBADF"))
    assert.throws(() => file.readSync(0, 1), hasCode("EBADF"))
    assert(Buffer.from(await other.read(0, 10)).equals(noise(8, 10)))
    await other.close()
  })
}

const names = (disk: VolumeDisk, dir: string) => {
  it("creates a name once, renames over another, and removes what may be absent", async () => {
    await disk.makeFolder(dir)
    await disk.makeFolder(dir)
    const path = join(dir, "one")
    await (await disk.create(path)).close()
    await assert.rejects(disk.create(path), hasCode("EEXIST"))
    const other = await disk.create(join(dir, "other"))
    await other.write([noise(6, 10)], 0)
    await disk.rename(join(dir, "other"), path)
    await other.write([noise(7, 10)], 10)
    await other.close()
    const again = await disk.open(path)
    assert.equal(await again.size(), 20)
    await again.close()
    await disk.syncFolder(dir)
    await assert.rejects(disk.open(join(dir, "other")), hasCode("ENOENT"))
    await assert.rejects(disk.rename(join(dir, "other"), path), hasCode("ENOENT"))
    await disk.remove(path)
    await disk.remove(path)
    assert(!(await disk.names(dir)).includes("one"))
  })

  it("lists the names of one folder only", async () => {
    const inner = join(dir, "inner")
    await disk.makeFolder(inner)
    await (await disk.create(join(inner, "x"))).close()
    await (await disk.create(join(inner, "y"))).close()
    assert.deepEqual([...(await disk.names(inner))].sort(), ["x", "y"])
    assert(!(await disk.names(dir)).includes("x"))
  })
}

describe("the real disk", () => {
  files(volumeDisk, join(folder, "files"))
  closed(volumeDisk, join(folder, "files"))
  names(volumeDisk, join(folder, "names"))

  it("creates files and folders for their owner only", async () => {
    const dir = join(folder, "private")
    await volumeDisk.makeFolder(dir)
    await (await volumeDisk.create(join(dir, "file"))).close()
    assert.equal(statSync(dir).mode & 0o777, 0o700)
    assert.equal(statSync(join(dir, "file")).mode & 0o777, 0o600)
  })

  it("reports a write that the disk accepts only in part", () => {
    // A limit of 8 KiB per file (ulimit counts 1 KiB in bash): a call for 20,000 bytes takes 8,192.
    const program = `
      import { volumeDisk } from "${new URL("../disk.ts", import.meta.url)}"
      process.on("SIGXFSZ", () => {})
      const file = await volumeDisk.create(process.argv[1])
      const part = new Uint8Array(5000).fill(1)
      const why = await file.write([part, part, part, part], 0).catch(({ code }) => code)
      console.log(why, await file.size())`
    const command = 'ulimit -f 8; exec "$0" --input-type=module -e "$1" "$2"'
    const given = ["-c", command, process.execPath, program, join(folder, "limited")]
    const { stdout, stderr } = spawnSync("bash", given, { encoding: "utf8" })
    assert.equal(stdout.trim(), "EFBIG 8192", stderr)
  })
})

describe("the simulated disk", () => {
  const simulated = simulateDisk(seeded(1))
  files(simulated.disk, "/v/files")
  closed(simulated.disk, "/v/files")
  names(simulated.disk, "/v/names")

  it("has no open files left", () => assert.equal(simulated.openFiles(), 0))
})
