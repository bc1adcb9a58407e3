/**
 * The pages that the gateway serves: `web/dist`, built out of `web` when that has changed. They
 * appear in one step: a server never finds half of them. Without network.
 */
import { spawnSync } from "node:child_process"
import { createHash } from "node:crypto"
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from "node:fs"
import { join, relative } from "node:path"
import { stripVTControlCharacters } from "node:util"
import { root } from "./cache.mjs"
import { projectNode } from "./packages.mjs"

const sources = join(root, "web")
const dist = join(sources, "dist")
const stamp = ".sources"

/** It takes about a second; on a busy machine some more. */
const build_timeout_ms = 120_000

const filesOf = (folder) =>
  readdirSync(folder, { withFileTypes: true }).flatMap((entry) => {
    const path = join(folder, entry.name)
    if (entry.isDirectory()) return path === dist ? [] : filesOf(path)
    return [path]
  })

/** What the pages were or would be made of, and by which packages. */
const wanted = () => {
  const hash = createHash("sha256").update(readFileSync(join(root, "package-lock.json")))
  for (const path of filesOf(sources).sort()) {
    hash.update(`\n${relative(sources, path)}\n`).update(readFileSync(path))
  }
  return hash.digest("hex")
}

/** Whether nothing is to be done. Reads the sources, some 100 kB. */
export const hasPage = () => {
  if (!existsSync(sources)) return true
  const path = join(dist, stamp)
  return existsSync(path) && readFileSync(path, "utf8") === wanted()
}

/** The line that says what, out of lines that say that; in plain letters. */
const reasonOf = ({ status, error, stderr }) => {
  const lines = stripVTControlCharacters(stderr ?? "").split("\n")
  const told = lines.find((line) => /^\w*Error\b|^\[[A-Z_]+\]|could not/i.test(line.trim()))
  return error?.message ?? told?.trim() ?? `exit ${status}`
}

/** Builds them. Answers why not, nothing when they are there; what was there stays then. */
export const buildPage = () => {
  const made_of = wanted()
  const scratch = join(root, ".cache", `web-${process.pid}`)
  const vite = join(root, "node_modules", "vite", "bin", "vite.js")
  const args = [vite, "build", "web", "--config", "web/vite.config.ts", "--logLevel", "warn"]
  try {
    const built = spawnSync(projectNode(), [...args, "--configLoader", "native"], {
      cwd: root,
      encoding: "utf8",
      env: { ...process.env, NODE_ENV: "production", NO_COLOR: "1", ALMANAC_WEB_OUT: scratch },
      stdio: ["ignore", "ignore", "pipe"],
      timeout: build_timeout_ms,
    })
    if (built.status !== 0) return reasonOf(built)
    mkdirSync(scratch, { recursive: true })
    writeFileSync(join(scratch, stamp), made_of)
    rmSync(dist, { recursive: true, force: true })
    renameSync(scratch, dist)
    return undefined
  } finally {
    rmSync(scratch, { recursive: true, force: true })
  }
}
