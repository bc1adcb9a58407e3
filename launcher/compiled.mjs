/**
 * A bundle whose compiled code is kept from one run to the next.
 *
 * Node's compile cache keeps what V8 has compiled before a module runs. But functions are compiled
 * when they are first called, and that is a tenth of a verb's time: here the code is taken when a
 * run ends. V8 does that for scripts only, not for modules, so the bundle is CommonJS.
 */
import { createHash } from "node:crypto"
import { readFileSync, renameSync, writeFileSync } from "node:fs"
import { createRequire } from "node:module"
import { basename, dirname, join } from "node:path"
import { deserialize, serialize } from "node:v8"
import { constants, Script } from "node:vm"

const sum_bytes = 32

// V8 looks at the version and the flags, but not at the code: a damaged file would crash it.
const sumOf = (bytes) => createHash("sha256").update(bytes).digest()

/** The code of each file by its name; of none where nothing is kept, or not as it was written. */
const readCode = (path) => {
  try {
    const bytes = readFileSync(path)
    const code = bytes.subarray(sum_bytes)
    return sumOf(code).equals(bytes.subarray(0, sum_bytes)) ? deserialize(code) : new Map()
  } catch {
    return new Map()
  }
}

const writeCode = (path, files) => {
  const scratch = `${path}.${process.pid}`
  try {
    const code = serialize(files)
    writeFileSync(scratch, Buffer.concat([sumOf(code), code]))
    renameSync(scratch, path)
  } catch {
    // Where it cannot be written the next run compiles again, and that is all.
  }
}

/**
 * Runs the CommonJS bundle at `path`, with the code that runs of `name` have left beside it. One
 * that ends well leaves what was missing.
 */
export const runCompiled = (path, name) => {
  const folder = dirname(path)
  const kept = join(folder, `${name}.code`)
  const known = readCode(kept)
  const modules = new Map()
  const compiled = new Map()
  const requireOutside = createRequire(path)

  const load = (file) => {
    const loaded = modules.get(file)
    if (loaded !== undefined) return loaded.exports
    const module = { exports: {} }
    modules.set(file, module)
    const filename = join(folder, file)
    // What is bundled was written as modules, which are strict.
    const head = '(function (exports, require, module, __filename, __dirname) { "use strict"; '
    const script = new Script(`${head}${readFileSync(filename, "utf8")}\n})`, {
      filename,
      cachedData: known.get(file),
      importModuleDynamically: constants.USE_MAIN_CONTEXT_DEFAULT_LOADER,
    })
    if (script.cachedDataRejected !== false) compiled.set(file, script)
    script.runInThisContext()(module.exports, require, module, filename, folder)
    return module.exports
  }
  const require = (id) => (id.startsWith("./") ? load(id.slice("./".length)) : requireOutside(id))

  process.on("exit", (code) => {
    if (code !== 0 || compiled.size === 0) return
    for (const [file, script] of compiled) known.set(file, script.createCachedData())
    writeCode(kept, known)
  })
  load(basename(path))
}
