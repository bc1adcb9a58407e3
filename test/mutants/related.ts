/** The tests that a source file can break: those that import it, directly or not. */
import { dirname, join } from "node:path"
import { importsOf } from "../house/tree.ts"
import type { Source } from "./mutation.ts"

/** Type imports are erased before the program runs. */
const type_import = /^(import|export) type [^"]*"[^"]+"/gm

/** The importers of each file. `imports` are those of package.json. */
const importersOf = (
  sources: ReadonlyArray<Source>,
  imports: Readonly<Record<string, string>>,
): ReadonlyMap<string, ReadonlySet<string>> => {
  const importers = new Map<string, Set<string>>()
  for (const { path, text } of sources) {
    for (const name of importsOf(text.replaceAll(type_import, ""))) {
      const folder = imports[`${name.split("/")[0]}/*`]
      const entry = imports[name] ?? folder?.replace("*", name.slice(name.indexOf("/") + 1))
      const target = name.startsWith("#") ? entry : join(dirname(path), name)
      if (target === undefined || !/^[.#]/.test(name)) continue
      const normal = join(target)
      importers.set(normal, (importers.get(normal) ?? new Set()).add(path))
    }
  }
  return importers
}

const wordsOf = (path: string) => new Set(path.split(/[/.-]/).filter((word) => word.length > 2))

/**
 * Returns a function from a file to its related test files, most likely to fail first: those with
 * the shortest import chain and a similar name.
 */
export const relatedTests = (
  sources: ReadonlyArray<Source>,
  imports: Readonly<Record<string, string>>,
) => {
  const importers = importersOf(sources, imports)
  return (path: string): ReadonlyArray<string> => {
    const distances = new Map([[path, 0]])
    // Iterating over a Map also visits entries that are added meanwhile.
    for (const [file, distance] of distances) {
      for (const importer of importers.get(file) ?? []) {
        if (!distances.has(importer)) distances.set(importer, distance + 1)
      }
    }
    const words = wordsOf(path)
    const cost = (test: string) =>
      2 * (distances.get(test) ?? 0) - words.intersection(wordsOf(test)).size
    return [...distances.keys()]
      .filter((file) => file.endsWith(".test.ts"))
      .toSorted((a, b) => cost(a) - cost(b) || (a < b ? -1 : 1))
  }
}
