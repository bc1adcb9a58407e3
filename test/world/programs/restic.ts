/** A real restic, for tests. */
import { execFileSync } from "node:child_process"
import { chmodSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { describe } from "@effect/vitest"
import { findBinary, missingBinary } from "../../../launcher/binaries.mjs"
import { describeAbsent } from "./absent.ts"

/** Its path; only the name if it is missing, for tests that are then skipped. */
export const restic = findBinary("restic")?.path ?? "restic"

/**
 * A `describe` for tests that need restic: without it they are skipped with one line, and fail if
 * ALMANAC_REQUIRE_ALL=1.
 */
export const describeWithRestic = (name: string, define: () => void) => {
  if (findBinary("restic")) return describe(name, define)
  const why = missingBinary("restic")
  describeAbsent(name, "restic", why)
}

/** A shell script in the folder with these lines. */
export const script = (folder: string, name: string, ...lines: ReadonlyArray<string>) => {
  const path = join(folder, name)
  writeFileSync(path, ["#!/bin/sh", ...lines, ""].join("\n"))
  chmodSync(path, 0o755)
  return path
}

/** A restic that obeys file modes even if we are root; undefined if that is impossible. */
export const obedientRestic = (folder: string) => {
  if (process.getuid?.() !== 0) return restic
  const drop = "setpriv --bounding-set=-dac_override,-dac_read_search"
  try {
    execFileSync("setpriv", ["--version"], { stdio: "ignore" })
  } catch {
    return undefined
  }
  return script(folder, "obedient-restic", `exec ${drop} -- '${restic}' "$@"`)
}
