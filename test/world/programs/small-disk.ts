/** A separate file system that a test may fill: a tmpfs, which only root can mount. */
import { spawnSync } from "node:child_process"
import { statfsSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { afterAll, describe } from "vitest"
import { newFolder } from "../server/server.ts"
import { describeAbsent } from "./absent.ts"
import { describeWithServer } from "./nats.ts"

const mib = 1024 * 1024
const page_bytes = 4096

export const freeBytes = (dir: string) => {
  const { bavail, bsize } = statfsSync(dir)
  return bavail * bsize
}

/** Files of another program, in large and then small pieces, until `left` bytes are free. */
export const fillDisk = (dir: string, left = 0) => {
  const files: Array<string> = []
  for (const bytes of [16 * mib, mib, page_bytes]) {
    while (freeBytes(dir) - bytes >= left) {
      const file = join(dir, `foreign-${files.length}`)
      files.push(file)
      try {
        writeFileSync(file, Buffer.alloc(bytes))
      } catch {
        break
      }
    }
  }
  return files
}

/** Tests with NATS and a disk of `bytes`; skipped with one line if it cannot be mounted. */
export const describeWithSmallDisk = (
  name: string,
  bytes: number,
  tests: (dir: string) => void,
) => {
  const dir = newFolder()
  const options = ["-t", "tmpfs", "-o", `size=${bytes}`, "tmpfs", dir]
  if (spawnSync("mount", options).status !== 0) {
    return describeAbsent(name, "a small disk", "Only root may mount one.", false)
  }
  return describeWithServer(name, () => {
    afterAll(() => void spawnSync("umount", ["--lazy", dir]))
    describe("on a small disk", () => tests(dir))
  })
}
