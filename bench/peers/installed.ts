/**
 * The peers' packages, which the product does not depend on and `tsc` does not see. This file is
 * next to their node_modules, so packages resolve from here only.
 */
import { spawnSync } from "node:child_process"
import { existsSync, readFileSync, statSync } from "node:fs"
import { fileURLToPath } from "node:url"

const folder = fileURLToPath(new URL(".", import.meta.url))

/** Installs the packages of the lockfile if they are missing; false if that fails. */
export const install = (): boolean => {
  // npm writes this file last, as a record of the installation.
  const record = `${folder}/node_modules/.package-lock.json`
  const wanted = statSync(`${folder}/package-lock.json`).mtimeMs
  if (existsSync(record) && statSync(record).mtimeMs >= wanted) return true
  console.error("bench: installing the peers' packages (npm ci, a minute where one is compiled)")
  const npm = spawnSync("npm", ["ci", "--no-audit", "--no-fund"], {
    cwd: folder,
    stdio: ["ignore", "ignore", "inherit"],
  })
  return npm.status === 0
}

/**
 * Imports a peer's package. T is the part that the caller uses; only running it verifies the type.
 */
export const installed = async <T>(name: string): Promise<T> => {
  try {
    // The package's own types are not available for a check, see above.
    return (await import(name)) as T
  } catch (cause) {
    throw new Error(`${name} is not installed (npm ci --prefix bench/peers)`, { cause })
  }
}

export const versionOf = (name: string): string => {
  const path = `${folder}/node_modules/${name}/package.json`
  return existsSync(path) ? JSON.parse(readFileSync(path, "utf8")).version : "not installed"
}
