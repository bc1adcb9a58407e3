/**
 * Removes what a package brings for other machines: ONNX Runtime has the libraries of all platforms
 * in one package, 240 MB that nothing here can load. What is this machine's own stays as it is.
 */
import { existsSync, readdirSync, rmSync } from "node:fs"
import { join } from "node:path"

const foldersOf = (path) =>
  readdirSync(path, { withFileTypes: true })
    .filter((entry) => entry.isDirectory())
    .map(({ name }) => name)

/**
 * Looks into the packages of `modules`; answers the folders that it removed. Does nothing to a
 * package that has nothing for this machine, nor a second time.
 */
export const pruneModules = (modules, { platform, arch } = process) => {
  const bin = join(modules, "onnxruntime-node", "bin")
  if (!existsSync(bin)) return []
  const others = foldersOf(bin).flatMap((napi) => {
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
  for (const folder of others) rmSync(folder, { recursive: true, force: true })
  return others
}
