/**
 * Adds the packages for other platforms to package-lock.json: `node launcher/lockfile.mjs`.
 *
 * A registry mirror may hold only the platforms that it serves. npm then omits the others from the
 * lockfile, and `npm ci` rejects that lockfile on every platform. Run this after changing
 * dependencies.
 */
import { readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { root } from "./cache.mjs"

const systems = /(android|darwin|freebsd|linux|openharmony|win32|aix|netbsd|openbsd|sunos)/
const processors = /(arm64|arm|x64|ia32|ppc64|riscv64|s390x|loong64|mips64el|wasm32)/

const platformOf = (name) => {
  const [, system] = systems.exec(name) ?? []
  const [, processor] = processors.exec(name.replace(systems, "")) ?? []
  if (!system || !processor) return undefined
  const libc = name.includes("musl") ? "musl" : /gnu/.test(name) ? "glibc" : undefined
  return {
    cpu: [processor],
    ...(system === "linux" && libc ? { libc: [libc] } : {}),
    optional: true,
    os: [system],
  }
}

/** Lockfile entries for the optional packages that the lockfile names but does not contain. */
export const missingPlatforms = (lock) => {
  const missing = {}
  for (const [path, entry] of Object.entries(lock.packages)) {
    for (const [name, version] of Object.entries(entry.optionalDependencies ?? {})) {
      const places = [`node_modules/${name}`, `${path}/node_modules/${name}`]
      if (places.some((place) => place in lock.packages)) continue
      const platform = platformOf(name)
      if (!platform || !/^\d/.test(version))
        throw new Error(`${name}@${version}: no known platform`)
      const dev = entry.dev ? { dev: true } : {}
      const { cpu, ...rest } = platform
      missing[`node_modules/${name}`] = { version, cpu, ...dev, ...rest }
    }
  }
  return missing
}

if (process.argv[1]?.endsWith("lockfile.mjs")) {
  const path = join(root, "package-lock.json")
  const lock = JSON.parse(readFileSync(path, "utf8"))
  const { "": first, ...rest } = { ...lock.packages, ...missingPlatforms(lock) }
  const sorted = Object.entries(rest).sort(([a], [b]) => a.localeCompare(b, "en"))
  lock.packages = { "": first, ...Object.fromEntries(sorted) }
  writeFileSync(path, `${JSON.stringify(lock, null, 2)}\n`)
}
