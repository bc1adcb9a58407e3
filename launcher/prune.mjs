/**
 * Removes libraries for other platforms. ONNX Runtime has those of all platforms in one package:
 * 240 MB that cannot be loaded here. This platform's own libraries stay.
 */
import { existsSync, readdirSync, rmSync } from "node:fs"
import { join } from "node:path"

const foldersOf = (path) =>
  readdirSync(path, { withFileTypes: true })
    .filter((entry) => entry.isDirectory())
    .map(({ name }) => name)

/**
 * Removes other platforms' libraries from the packages in `modules`; returns the removed folders. A
 * package without libraries for this platform stays as it is.
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
