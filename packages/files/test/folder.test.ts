import { existsSync, mkdirSync, statSync, symlinkSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { temporaryFolder } from "../../../test/world/programs/nats.ts"
import { makeFolder } from "../folder.ts"

const mode = 0o700

const live = (name: string, body: (folder: string) => void) =>
  it.live(name, () => Effect.scoped(Effect.map(temporaryFolder, body)))

describe("a new folder", () => {
  live("has its mode, as do its new parents, and is not changed the second time", (folder) => {
    const path = join(folder, "a", "b")
    makeFolder(path, mode)
    for (const made of [join(folder, "a"), path]) assert.equal(statSync(made).mode & 0o777, mode)
    makeFolder(path, 0o755)
    assert.equal(statSync(path).mode & 0o777, mode)
  })

  live("is refused if a file or a dangling link is in the way", (folder) => {
    writeFileSync(join(folder, "file"), "")
    symlinkSync(join(folder, "nowhere", "else"), join(folder, "link"))
    for (const name of ["file", "link"]) {
      assert.throws(() => makeFolder(join(folder, name), mode), /EEXIST/)
      assert.throws(() => makeFolder(join(folder, name, "in"), mode), /ENOTDIR|EEXIST/)
    }
  })

  // Node's own `recursive` loops there forever.
  it.skipIf(!existsSync("/proc/self"))("is refused at once if no folder can be created", () => {
    for (const path of ["/proc/almanac", "/proc/almanac/objects"]) {
      assert.throws(() => makeFolder(path, mode), /ENOENT/)
    }
  })

  live("is found below a link", (folder) => {
    mkdirSync(join(folder, "real"))
    symlinkSync(join(folder, "real"), join(folder, "link"))
    makeFolder(join(folder, "link", "a"), mode)
    assert.isTrue(existsSync(join(folder, "real", "a")))
  })
})
