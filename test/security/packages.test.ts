/** Installed packages: pinned, complete, from a single registry, and without install scripts. */
import { existsSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { expect, it } from "vitest"

const root = join(import.meta.dirname, "../..")

interface Locked {
  readonly version?: string
  readonly integrity?: string
  readonly resolved?: string
  readonly link?: boolean
  readonly dev?: boolean
  readonly optional?: boolean
  readonly os?: ReadonlyArray<string>
}

const read = (...path: ReadonlyArray<string>) =>
  JSON.parse(readFileSync(join(root, ...path), "utf8"))

const locked: ReadonlyArray<readonly [string, Locked]> = Object.entries(
  read("package-lock.json").packages as Readonly<Record<string, Locked>>, // npm's own format.
).filter(([path]) => path !== "")

/** Licences of packages that this program may include. */
const licences = new Set([
  "0BSD",
  "Apache-2.0",
  "Apache-2.0 AND MIT",
  "BlueOak-1.0.0",
  "BSD-2-Clause",
  "BSD-3-Clause",
  "ISC",
  "MIT",
  "MIT OR Apache-2.0",
  "(MIT OR CC0-1.0)",
  "MPL-2.0",
  "PSF-2.0",
  "Python-2.0",
  // LGPL: sharp links it as a separate library. LICENSE.txt: those of NIST and the HDF Group, both
  // permissive.
  "Unlicense",
  "LGPL-3.0-or-later",
  "SEE LICENSE IN LICENSE.txt",
])

it("each package has one version and the hash of its content, if it is for this machine", () => {
  expect(locked.length).toBeGreaterThan(200)
  const unpinned = locked.filter(([, { version }]) => !/^\d+\.\d+\.\d+/.test(version ?? ""))
  expect(unpinned).toEqual([])
  const unproven = locked.filter(([, { integrity }]) => !integrity?.startsWith("sha512-"))
  // A mirror may omit the hashes of other platforms' packages (launcher/lockfile.mjs); these are
  // all optional.
  const here = unproven.filter(([path]) => existsSync(join(root, path)))
  expect(here).toEqual([])
  expect(unproven.filter(([, { optional }]) => optional !== true)).toEqual([])
})

it("every package is from the registry", () => {
  const elsewhere = locked.filter(
    ([, { resolved = "", link }]) => link === true || !/^(https:\/\/|$)/.test(resolved),
  )
  expect(elsewhere).toEqual([])
})

it("no package runs a script of its own when it is installed", () => {
  const { allowScripts } = read("package.json")
  expect(Object.values(allowScripts)).toEqual(Object.values(allowScripts).map(() => false))
  const installer = readFileSync(join(root, "launcher/npm.mjs"), "utf8")
  expect(installer).toContain('"--ignore-scripts"')
})

it("each installed package has a known licence", () => {
  const unknown = locked
    .filter(([path]) => existsSync(join(root, path, "package.json")))
    .map(([path]) => [path, read(path, "package.json").license] as const)
    .filter(([, licence]) => !licences.has(licence))
  expect(unknown).toEqual([])
})
