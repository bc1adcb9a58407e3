/**
 * The program in few files, made of the sources in two seconds whenever these have changed.
 *
 * Nothing depends on it: without it Node runs the sources as they are. But half of a command's time
 * and of an agent's memory is modules that it loads and never uses, and a bundle leaves them out
 * (decision 0070). `node launcher/bundle.mjs` makes it, with the project's Node.
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
import { basename, join, relative } from "node:path"
import { fileURLToPath } from "node:url"
import { root } from "./cache.mjs"

/** What is started by its name: its file in the bundle is called alike. */
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

/** Each made of its sources as they were; one that runs may still load a part of its own. */
const bundles = join(root, ".cache", "program")
const bundles_max = 5

const filesOf = (folder) =>
  readdirSync(`${root}/${folder}`, { withFileTypes: true }).flatMap((entry) => {
    const path = `${folder}/${entry.name}`
    if (entry.isDirectory()) return entry.name === "test" ? [] : filesOf(path)
    return [path]
  })

/** In each bundle: the sources that it was made of, by path, time of change and size. */
const sources_name = "sources.txt"

const sourcesText = () => {
  const there = folders.filter((folder) => existsSync(join(root, folder)))
  const lines = [...there.flatMap(filesOf), ...files].map((path) => {
    const found = statSync(`${root}/${path}`, { throwIfNoEntry: false })
    return `${path} ${found?.mtimeMs} ${found?.size}\n`
  })
  return lines.join("")
}

const isMadeOf = (folder, sources) => {
  try {
    return readFileSync(join(folder, sources_name), "utf8") === sources
  } catch {
    // Not finished, or just removed.
    return false
  }
}

const foldersOf = (path) =>
  (existsSync(path) ? readdirSync(path) : []).map((name) => join(path, name))

let found_folder

/**
 * The folder of the bundle of the sources as they are now, if it is there. Every command waits for
 * it: a process looks at the sources once.
 */
const findBundle = () => {
  if (found_folder === undefined) {
    const sources = sourcesText()
    found_folder = foldersOf(bundles).find((folder) => isMadeOf(folder, sources))
  }
  return found_folder
}

/** Whether what makes it is installed. */
export const canBundle = () => existsSync(join(root, "node_modules", "rolldown"))

/** Whether the bundle of the sources as they are now is there. */
export const hasBundle = () => findBundle() !== undefined

/** The file to run for an entry: its own in the bundle, or the entry itself without a bundle. */
export const programOf = (entry) => {
  const folder = findBundle()
  return folder === undefined ? join(root, entry) : join(folder, `${basename(entry, ".ts")}.js`)
}

/** What says where a source is keeps saying so: threads and files are found from there. */
const origins = (folder) => ({
  name: "origins",
  transform: (code, id) => {
    if (id.includes("node_modules") || !id.startsWith(root)) return null
    const url = `new URL(${JSON.stringify(relative(folder, id))}, import.meta.url)`
    const toPath = `process.getBuiltinModule("node:url").fileURLToPath`
    const placed = {
      "import.meta.url": `${url}.href`,
      "import.meta.dirname": `${toPath}(new URL(".", ${url}))`,
    }
    const code_placed = code.replaceAll(/import\.meta\.(url|dirname)\b/g, (was) => placed[was])
    return code_placed === code ? null : { code: code_placed }
  },
})

/**
 * Node's modules without their named exports: to make these, Node reads every property of a module,
 * which loads its fetch with node:http and its streams with node:fs.
 */
const builtins = {
  name: "builtins",
  // node:module is what the bundler's own part is made with.
  resolveId: (id) => (id.startsWith("node:") && id !== "node:module" ? `\0${id}` : null),
  load: (id) =>
    id.startsWith("\0node:")
      ? `module.exports = process.getBuiltinModule(${JSON.stringify(id.slice(1))})`
      : null,
}

/**
 * Effect makes a segmenter as soon as its command line is loaded, which takes a tenth of a command.
 * Only the layout of help uses it.
 */
const lateSegmenter = {
  name: "late-segmenter",
  transform: (code, id) => {
    if (!id.endsWith("effect/dist/cli/CliOutput.js")) return null
    const late = "{ segment(text) { return (this.made ??= $1).segment(text) } }"
    return { code: code.replace(/(new Intl\.Segmenter\([^)]*\))/, late) }
  },
}

/** What explains the sources is half of them, and would be read at each start. */
const comments = { jsdoc: false, annotation: false }

/** Native code stays where its package has it. */
const native = [/better-sqlite3/, /blake-hash/, /@node-rs\/crc32/, /sharp/, /onnxruntime/]

const prune = () => {
  const age = (name) => statSync(join(bundles, name)).mtimeMs
  const names = readdirSync(bundles).sort((one, other) => age(other) - age(one))
  for (const name of names.slice(bundles_max)) rmSync(join(bundles, name), { recursive: true })
}

/** Makes the bundle, unless it exists. Two processes that do it at once leave two equal ones. */
const makeBundle = async () => {
  if (hasBundle()) return
  const sources = sourcesText()
  const { rolldown } = await import("rolldown")
  const folder = join(bundles, `${Date.now()}-${process.pid}`)
  const bundle = await rolldown({
    input: Object.fromEntries(entries.map((entry) => [basename(entry, ".ts"), join(root, entry)])),
    platform: "node",
    external: native,
    plugins: [origins(folder), builtins, lateSegmenter],
    logLevel: "silent",
  })
  const names = { entryFileNames: "[name].js", chunkFileNames: "[name]-[hash].js" }
  await bundle.write({ dir: folder, format: "esm", ...names, comments })
  // The last of it: by this file a bundle counts.
  writeFileSync(join(folder, sources_name), sources)
  prune()
}

if (process.argv[1] && realpathSync(process.argv[1]) === fileURLToPath(import.meta.url)) {
  await makeBundle()
}
