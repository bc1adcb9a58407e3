/**
 * Bundles the program into a few files, within two seconds, whenever its sources have changed.
 *
 * The bundle is optional: without one, Node runs the sources. But half of a command's time and of
 * an agent's memory goes to modules that are loaded and never used; the bundle omits them (decision
 * 0070). `node launcher/bundle.mjs` builds it with the project's Node.
 */
import {
  existsSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs"
import { basename, dirname, join, relative } from "node:path"
import { fileURLToPath } from "node:url"
import { root } from "./cache.mjs"

/** Entry files. Each keeps its name in the bundle. */
const entries = ["main.ts", "server/agent/agent-process.ts"]

const folders = [
  "actors",
  "adapters",
  "cli",
  "events",
  "gateway",
  "packages",
  "projections",
  "schemas",
  "server",
  "launcher",
]
const files = ["main.ts", "package.json", "package-lock.json"]

/** A few older bundles are kept, because processes that run them may still load parts of them. */
const bundles = join(root, ".cache", "program")
const bundles_max = 5

const filesOf = (folder) =>
  readdirSync(`${root}/${folder}`, { withFileTypes: true }).flatMap((entry) => {
    const path = `${folder}/${entry.name}`
    if (entry.isDirectory()) return entry.name === "test" ? [] : filesOf(path)
    return [path]
  })

/** A file in each bundle: path, modification time and size of each of its sources. */
const sources_name = "sources.txt"

const sourcesText = () => {
  const existing = folders.filter((folder) => existsSync(join(root, folder)))
  const lines = [...existing.flatMap(filesOf), ...files].map((path) => {
    const stats = statSync(`${root}/${path}`, { throwIfNoEntry: false })
    return `${path} ${stats?.mtimeMs} ${stats?.size}\n`
  })
  return lines.join("")
}

const isBuiltFrom = (folder, sources) => {
  try {
    return readFileSync(join(folder, sources_name), "utf8") === sources
  } catch {
    // The bundle is unfinished, or was just removed.
    return false
  }
}

const foldersOf = (path) =>
  (existsSync(path) ? readdirSync(path) : []).map((name) => join(path, name))

let current_folder

/**
 * The folder of the bundle of the current sources, if there is one. Every command waits for this,
 * so a process reads the sources only once.
 */
const findBundle = () => {
  if (current_folder === undefined) {
    const sources = sourcesText()
    current_folder = foldersOf(bundles).find((folder) => isBuiltFrom(folder, sources))
  }
  return current_folder
}

/** Whether the bundler is installed. */
export const canBundle = () => existsSync(join(root, "node_modules", "rolldown"))

/** Whether there is a bundle of the current sources. */
export const hasBundle = () => findBundle() !== undefined

/** The file to run for an entry: its file in the bundle, or its source if there is no bundle. */
export const programOf = (entry) => {
  const folder = findBundle()
  return folder === undefined ? join(root, entry) : join(folder, `${basename(entry, ".ts")}.js`)
}

/**
 * Makes `import.meta` refer to the location of the source, because files are found relative to it.
 * Programs of threads and children, `new URL("./program.ts", import.meta.url)`, become entries of
 * the bundle: a thread that runs a source loads Node's compiler for it, which takes 13 MB.
 */
const origins = (folder) => ({
  name: "origins",
  transform: {
    filter: { id: { exclude: /node_modules/ }, code: /import\.meta/ },
    handler(code, id) {
      if (!id.startsWith(root)) return null
      const url = `new URL(${JSON.stringify(relative(folder, id))}, import.meta.url)`
      const toPath = `process.getBuiltinModule("node:url").fileURLToPath`
      const replacements = {
        "import.meta.url": `${url}.href`,
        "import.meta.dirname": `${toPath}(new URL(".", ${url}))`,
      }
      const replaced = code
        .replaceAll(/new URL\("(\.\/[^"]+\.ts)", import\.meta\.url\)/g, (_match, program) => {
          const file = this.emitFile({ type: "chunk", id: join(dirname(id), program) })
          return `new URL(import.meta.ROLLUP_FILE_URL_${file})`
        })
        .replaceAll(/import\.meta\.(url|dirname)\b/g, (match) => replacements[match])
      return replaced === code ? null : { code: replaced }
    },
  },
})

/**
 * Imports Node's modules without their named exports. To create those, Node reads every property of
 * a module, which loads fetch for node:http and streams for node:fs.
 */
const builtins = {
  name: "builtins",
  resolveId: {
    // The bundler's own runtime imports node:module.
    filter: { id: /^node:(?!module$)/ },
    handler: (id) => `\0${id}`,
  },
  load: {
    filter: { id: /^\0node:/ },
    handler: (id) => `module.exports = process.getBuiltinModule(${JSON.stringify(id.slice(1))})`,
  },
}

/**
 * Creates Effect's segmenter on first use. Effect creates it when its command line module loads,
 * which takes a tenth of a command's time, but only the layout of help uses it.
 */
const lazySegmenter = {
  name: "lazy-segmenter",
  transform: {
    filter: { id: /effect\/dist\/cli\/CliOutput\.js$/ },
    handler: (code) => {
      const lazy = "{ segment(text) { return (this.made ??= $1).segment(text) } }"
      return { code: code.replace(/(new Intl\.Segmenter\([^)]*\))/, lazy) }
    },
  },
}

/** Removes comments: they are half of the sources, and every start would read them. */
const comments = { jsdoc: false, annotation: false }

/** Packages with native code or WebAssembly files stay outside the bundle. */
const native = [
  /better-sqlite3/,
  /blake-hash/,
  /@node-rs\/crc32/,
  /sharp/,
  /onnxruntime/,
  /@tensorflow/,
]

const removeOldBundles = () => {
  const age = (name) => statSync(join(bundles, name)).mtimeMs
  const names = readdirSync(bundles).sort((one, other) => age(other) - age(one))
  for (const name of names.slice(bundles_max)) rmSync(join(bundles, name), { recursive: true })
}

/** Builds the bundle unless it exists. Two concurrent builds leave two equal bundles. */
const buildBundle = async () => {
  if (hasBundle()) return
  const sources = sourcesText()
  const { rolldown } = await import("rolldown")
  const folder = join(bundles, `${Date.now()}-${process.pid}`)
  const bundle = await rolldown({
    input: Object.fromEntries(entries.map((entry) => [basename(entry, ".ts"), join(root, entry)])),
    platform: "node",
    external: native,
    plugins: [origins(folder), builtins, lazySegmenter],
    logLevel: "silent",
  })
  const names = { entryFileNames: "[name].js", chunkFileNames: "[name]-[hash].js" }
  await bundle.write({ dir: folder, format: "esm", ...names, comments })
  // Written last: a bundle without this file is incomplete.
  writeFileSync(join(folder, sources_name), sources)
  removeOldBundles()
}

if (process.argv[1] && realpathSync(process.argv[1]) === fileURLToPath(import.meta.url)) {
  await buildBundle()
}
