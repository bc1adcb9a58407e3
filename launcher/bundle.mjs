/**
 * The program in few files, made of the sources in two seconds whenever these have changed.
 *
 * Nothing depends on it: without it Node runs the sources as they are. But half of a verb's time
 * and of an agent's memory is modules that it loads and never uses, and a bundle leaves them out
 * (decision 0070). `node launcher/bundle.mjs` makes it, with the project's Node.
 */
import { createHash } from "node:crypto"
import {
  existsSync,
  mkdirSync,
  readdirSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
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

/** The folder of the bundle of the sources as they are now. Every verb waits for it. */
const bundleFolder = () => {
  const there = folders.filter((folder) => existsSync(join(root, folder)))
  const lines = [...there.flatMap(filesOf), ...files].map((path) => {
    const found = statSync(`${root}/${path}`, { throwIfNoEntry: false })
    return `${path} ${found?.mtimeMs} ${found?.size}\n`
  })
  const hash = createHash("sha256").update(lines.join(""))
  return join(bundles, hash.digest("hex").slice(0, 16))
}

/** Whether what makes it is installed. */
export const canBundle = () => existsSync(join(root, "node_modules", "rolldown"))

/** Whether the bundle of the sources as they are now is there. */
export const hasBundle = () => existsSync(bundleFolder())

/**
 * What Node is to run: the entry's file in the bundle, or the entry itself without one. The bundle
 * is there as modules, `js`, and as CommonJS, `cjs` (see compiled.mjs).
 */
export const programOf = (entry, form = "js") => {
  const bundled = join(bundleFolder(), `${basename(entry, ".ts")}.${form}`)
  return existsSync(bundled) ? bundled : join(root, entry)
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

/** What explains the sources is half of them, and would be read at each start. */
const comments = { jsdoc: false, annotation: false }

const forms = [
  ["esm", "js"],
  ["cjs", "cjs"],
]

/** Native code stays where its package has it. */
const native = [/better-sqlite3/, /blake-hash/, /@node-rs\/crc32/, /sharp/, /onnxruntime/]

const prune = () => {
  const age = (name) => statSync(join(bundles, name)).mtimeMs
  const names = readdirSync(bundles).sort((one, other) => age(other) - age(one))
  for (const name of names.slice(bundles_max)) rmSync(join(bundles, name), { recursive: true })
}

/** Makes the bundle; whoever makes it at the same time makes the same. */
const makeBundle = async () => {
  const { rolldown } = await import("rolldown")
  const folder = bundleFolder()
  const making = `${folder}.${process.pid}`
  const bundle = await rolldown({
    input: Object.fromEntries(entries.map((entry) => [basename(entry, ".ts"), join(root, entry)])),
    platform: "node",
    external: native,
    plugins: [origins(folder)],
    logLevel: "silent",
  })
  mkdirSync(bundles, { recursive: true })
  for (const [format, form] of forms) {
    const names = { entryFileNames: `[name].${form}`, chunkFileNames: `[name]-[hash].${form}` }
    // A script's own import() is told of as experimental, to each user, each time.
    await bundle.write({ dir: making, format, ...names, comments, dynamicImportInCjs: false })
  }
  if (existsSync(folder)) rmSync(making, { recursive: true })
  else renameSync(making, folder)
  prune()
}

if (process.argv[1] && realpathSync(process.argv[1]) === fileURLToPath(import.meta.url)) {
  await makeBundle()
}
