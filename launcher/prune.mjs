/**
 * Removes files of packages that nothing on this machine can use: libraries of ONNX Runtime for
 * other platforms (240 MB), Node's C++ headers (68 MB), and the sources and other platforms'
 * libraries of SQLite (25 MB).
 */
import { existsSync, readdirSync, rmSync } from "node:fs"
import { join } from "node:path"

const namesIn = (path) => (existsSync(path) ? readdirSync(path) : [])

const foldersOf = (path) =>
  readdirSync(path, { withFileTypes: true })
    .filter((entry) => entry.isDirectory())
    .map(({ name }) => name)

/** A package without libraries for this platform stays as it is. */
const ofOnnxRuntime = (modules, { platform, arch }) => {
  const bin = join(modules, "onnxruntime-node", "bin")
  if (!existsSync(bin)) return []
  return foldersOf(bin).flatMap((napi) => {
    const own = join(bin, napi, platform, arch)
    if (!existsSync(own)) return []
    return foldersOf(join(bin, napi)).flatMap((name) =>
      name === platform
        ? foldersOf(join(bin, napi, name))
            .filter((other) => other !== arch)
            .map((other) => join(bin, napi, name, other))
        : [join(bin, napi, name)],
    )
  })
}

const ofNode = (modules) =>
  namesIn(modules)
    .filter((name) => name.startsWith("node-linux-"))
    .flatMap((name) => ["include", "share"].map((folder) => join(modules, name, folder)))

/** Both C libraries' files stay, as better-sqlite3 selects one when it loads. */
const ofSqlite = (modules, { platform, arch }) => {
  const folder = join(modules, "better-sqlite3")
  const own = [`${platform}-${arch}.node`, `${platform}musl-${arch}.node`]
  const libraries = namesIn(join(folder, "prebuilds"))
  if (!libraries.some((name) => own.includes(name))) return []
  const others = libraries.filter((name) => !own.includes(name))
  return [
    ...["deps", "src"].map((name) => join(folder, name)),
    ...others.map((name) => join(folder, "prebuilds", name)),
  ]
}

/** Removes these files from the packages in `modules`; returns the removed paths. */
export const pruneModules = (modules, machine = process) => {
  const unused = [
    ...ofOnnxRuntime(modules, machine),
    ...ofNode(modules),
    ...ofSqlite(modules, machine),
  ].filter((path) => existsSync(path))
  for (const path of unused) rmSync(path, { recursive: true, force: true })
  return unused
}
