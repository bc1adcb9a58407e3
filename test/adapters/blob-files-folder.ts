/**
 * Folders and child processes for the tests of the plain blob store.
 */
import { type ChildProcess, spawn } from "node:child_process"
import { mkdtempSync, readdirSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { createInterface } from "node:readline"
import { Effect } from "effect"
import { openBlobFiles } from "#adapters/blob-files.ts"

/** A folder that lasts as long as the scope. */
export const freshFolder = Effect.acquireRelease(
  Effect.sync(() => mkdtempSync(join(tmpdir(), "almanac-blobs-"))),
  (dir) => Effect.sync(() => rmSync(dir, { recursive: true, force: true })),
)

export const capacity_bytes = 8 * 1024 ** 3

/** The store in the folder, for as long as the scope lasts. */
export const openStore = (dir: string) =>
  Effect.map(openBlobFiles({ dir, capacity_bytes }), ({ store }) => store)

/** Every file under a part of the store's folder. */
export const filesUnder = (dir: string, part: string) =>
  readdirSync(join(dir, part), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name))

/** A script beside this file in a process of its own, and the lines that it prints. */
export const startScript = (name: string, ...argv: ReadonlyArray<string>) => {
  const child: ChildProcess = spawn(process.execPath, [join(import.meta.dirname, name), ...argv], {
    stdio: ["ignore", "pipe", "inherit"],
  })
  const { stdout } = child
  if (stdout === null) throw new Error("the script's output was asked to be a pipe")
  const exited = new Promise<number | null>((resolve) => child.once("close", resolve))
  return { child, lines: createInterface({ input: stdout }), exited }
}
