/**
 * Builds the pages that the gateway serves: `web/dist`, from `web` if that has changed. They appear
 * in one step, so that a server never finds half of them. Needs no network.
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

/** A build takes about a second, longer on a busy machine. */
const build_timeout_ms = 120_000

const filesOf = (folder) =>
  readdirSync(folder, { withFileTypes: true }).flatMap((entry) => {
    const path = join(folder, entry.name)
    if (entry.isDirectory()) return path === dist ? [] : filesOf(path)
    return [path]
  })

/** Hash of the pages' sources, and of the lockfile for the packages that build them. */
const sourcesHash = () => {
  const hash = createHash("sha256").update(readFileSync(join(root, "package-lock.json")))
  for (const path of filesOf(sources).sort()) {
    hash.update(`\n${relative(sources, path)}\n`).update(readFileSync(path))
  }
  return hash.digest("hex")
}

/** Whether the built pages match their sources. Reads the sources, about 100 kB. */
export const hasPage = () => {
  if (!existsSync(sources)) return true
  const path = join(dist, stamp)
  return existsSync(path) && readFileSync(path, "utf8") === sourcesHash()
}

/** The line of the output that names the error, without terminal colors. */
const reasonOf = ({ status, error, stderr }) => {
  const lines = stripVTControlCharacters(stderr ?? "").split("\n")
  const line = lines.find((line) => /^\w*Error\b|^\[[A-Z_]+\]|could not/i.test(line.trim()))
  return error?.message ?? line?.trim() ?? `exit ${status}`
}

/** Builds the pages. If that fails, returns the reason and keeps the previous pages. */
export const buildPage = () => {
  const hash = sourcesHash()
  const scratch = join(root, ".cache", `web-${process.pid}`)
  const vite = join(root, "node_modules", "vite", "bin", "vite.js")
  const args = [vite, "build", "web", "--config", "web/vite.config.ts", "--logLevel", "warn"]
  try {
    const result = spawnSync(projectNode(), [...args, "--configLoader", "native"], {
      cwd: root,
      encoding: "utf8",
      env: { ...process.env, NODE_ENV: "production", NO_COLOR: "1", ALMANAC_WEB_OUT: scratch },
      stdio: ["ignore", "ignore", "pipe"],
      timeout: build_timeout_ms,
    })
    if (result.status !== 0) return reasonOf(result)
    mkdirSync(scratch, { recursive: true })
    writeFileSync(join(scratch, stamp), hash)
    rmSync(dist, { recursive: true, force: true })
    renameSync(scratch, dist)
    return undefined
  } finally {
    rmSync(scratch, { recursive: true, force: true })
  }
}
