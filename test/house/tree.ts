/** The tree that the house rules check: every text file of the project, read once. */
import { readdirSync, readFileSync } from "node:fs"
import { dirname, join, relative, resolve } from "node:path"

export interface TreeFile {
  /** Relative to the root of the checkout. */
  readonly path: string
  readonly text: string
}

export const root = dirname(dirname(import.meta.dirname))

const skipped_folders = new Set([".cache", ".git", "data", "dist", "node_modules", "test-results"])
const text_file = /(\.(ts|mts|mjs|json|md|html|css|conf|toml|sh|yml)|\/run|LICENSE|almanac)$/

const walk = (folder: string): ReadonlyArray<string> =>
  readdirSync(folder, { withFileTypes: true }).flatMap((entry) => {
    const path = join(folder, entry.name)
    if (entry.isDirectory()) return skipped_folders.has(entry.name) ? [] : walk(path)
    return entry.isFile() && text_file.test(path) ? [path] : []
  })

/** Every text file that belongs to the project, sorted by path. */
export const readTree = (): ReadonlyArray<TreeFile> =>
  walk(root)
    .toSorted()
    .map((path) => ({ path: relative(root, path), text: readFileSync(path, "utf8") }))

const source = /^(?:import|export (?:type )?[{*])[^"]*?"([^"]+)"/gm
const dynamic = /\bimport\("([^"]+)"\)/g

/** The specifiers of a module's static and dynamic imports, as written. */
export const importsOf = (text: string): ReadonlyArray<string> =>
  [source, dynamic].flatMap((pattern) => [...text.matchAll(pattern)].map(([, from = ""]) => from))

const named = /["'`\s]((?:#|\.{0,2}\/)?[\w./-]+\.(?:m?ts|mjs))["'`\s]/g

/** The project files that this text names: by import, by path, or by bare file name. */
export const filesNamedIn = ({ path, text }: TreeFile): ReadonlyArray<string> =>
  [...text.matchAll(named)].flatMap(([, name = ""]) =>
    name.startsWith("#")
      ? [name.slice(1)]
      : [relative(root, resolve(root, dirname(path), name)), relative(root, resolve(root, name))],
  )

/** The text with comments blanked, so that line numbers stay the same. */
export const withoutComments = (text: string) =>
  text
    .replaceAll(/\/\*[\s\S]*?\*\//g, (comment) => comment.replaceAll(/[^\n]/g, " "))
    .replaceAll(/(^|\s)\/\/[^\n]*/g, "$1")

const exported =
  /^export (?:async )?(?:const|function\*?|class|interface|type) (\w+)(?: = typeof (\w+)\.Type$)?/gm

/** Constants and functions; types and classes may be exported before any use. */
const exported_value = /^export (?:async )?(?:const|function\*?) ([a-z]\w*)/gm

/** Code without its comments. No code names the contestants that a benchmark exports. */
const codeOf = (tree: ReadonlyArray<TreeFile>) =>
  tree
    .filter(({ path }) => /\.(m?ts|mjs)$/.test(path))
    .map(({ path, text }) => ({ path, text: withoutComments(text) }))

const isNamed = ({ path }: TreeFile) => !path.startsWith("bench/")

/** `path: name` for each declaration that the pattern finds and whose name passes the test. */
const declared = (
  code: ReadonlyArray<TreeFile>,
  pattern: RegExp,
  isSuch: (name: string) => boolean,
): ReadonlyArray<string> =>
  code
    .filter(isNamed)
    .flatMap(({ path, text }) =>
      [...text.matchAll(pattern)]
        .filter(([, name = ""]) => isSuch(name))
        .map(([, name]) => `${path}: ${name}`),
    )

/** Exports that nothing uses except their own declaration, as `path: name`. */
export const unusedExports = (tree: ReadonlyArray<TreeFile>): ReadonlyArray<string> => {
  const code = codeOf(tree)
  const uses = new Map<string, number>()
  const count = (word: string, by: number) => uses.set(word, (uses.get(word) ?? 0) + by)
  for (const { text } of code) {
    for (const [word] of text.matchAll(/\w+/g)) count(word, 1)
    for (const [, name = "", of] of text.matchAll(exported)) count(name, name === of ? -2 : -1)
  }
  return declared(code, exported, (name) => uses.get(name) === 0)
}

/** Exported constants and functions that only their own file uses. */
export const ownExports = (tree: ReadonlyArray<TreeFile>): ReadonlyArray<string> => {
  const code = codeOf(tree)
  const files = new Map<string, number>()
  for (const { text } of code) {
    for (const word of new Set(text.match(/\w+/g))) files.set(word, (files.get(word) ?? 0) + 1)
  }
  return declared(code, exported_value, (name) => files.get(name) === 1)
}

/** `line: what` for each line that matches the pattern. */
export const linesWith = (text: string, pattern: RegExp, what: string): ReadonlyArray<string> =>
  text.split("\n").flatMap((line, index) => (pattern.test(line) ? [`${index + 1}: ${what}`] : []))
