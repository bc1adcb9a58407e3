/** The built pages: their files and sizes. */
import { readFileSync } from "node:fs"
import { join } from "node:path"
import { gzipSync } from "node:zlib"
import { buildPage, hasPage } from "../../../launcher/page.mjs"

const dist = join(import.meta.dirname, "../../..", "web", "dist")

/** Builds the pages if a source is newer. */
export const buildIfNeeded = (): void => {
  const reason = hasPage() ? undefined : buildPage()
  if (reason) throw new Error(reason)
}

/** The files that a page's HTML references. */
export const namedIn = (page: string): ReadonlyArray<string> => {
  const html = readFileSync(join(dist, page), "utf8")
  return [...html.matchAll(/(?:src|href)="([^"#]+)"/g)].map(([, path = ""]) => path)
}

/** The local scripts that a script imports. */
const imported = (path: string) => {
  const text = path.endsWith(".js") ? readFileSync(join(dist, path), "utf8") : ""
  return [...text.matchAll(/["'`]\.\/([\w-]+\.js)["'`]/g)].map(([, name = ""]) => `/assets/${name}`)
}

/** The page and every file that it loads, directly or not. */
export const filesOf = (page: string): ReadonlyArray<string> => {
  const files = new Set([page, ...namedIn(page)])
  for (const file of files) for (const other of imported(file)) files.add(other)
  return [...files]
}

/** Transferred size in bytes. */
export const sizeOf = (file: string): number => gzipSync(readFileSync(join(dist, file))).length
