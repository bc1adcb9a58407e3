/** The pages as they were built: their files and what those weigh. */
import { readFileSync } from "node:fs"
import { join } from "node:path"
import { gzipSync } from "node:zlib"
import { buildPage, hasPage } from "../../../launcher/page.mjs"

const dist = join(import.meta.dirname, "../../..", "web", "dist")

/** Builds them where a source is newer. */
export const buildIfNeeded = (): void => {
  const reason = hasPage() ? undefined : buildPage()
  if (reason) throw new Error(reason)
}

/** What a page's HTML names. */
export const namedIn = (page: string): ReadonlyArray<string> => {
  const html = readFileSync(join(dist, page), "utf8")
  return [...html.matchAll(/(?:src|href)="([^"#]+)"/g)].map(([, path = ""]) => path)
}

/** A script names the scripts that it imports beside it. */
const imported = (path: string) => {
  const text = path.endsWith(".js") ? readFileSync(join(dist, path), "utf8") : ""
  return [...text.matchAll(/["'`]\.\/([\w-]+\.js)["'`]/g)].map(([, name = ""]) => `/assets/${name}`)
}

/** The page and every file that it loads, however far away. */
export const filesOf = (page: string): ReadonlyArray<string> => {
  const files = new Set([page, ...namedIn(page)])
  for (const file of files) for (const other of imported(file)) files.add(other)
  return [...files]
}

/** Bytes over the wire. */
export const sizeOf = (file: string): number => gzipSync(readFileSync(join(dist, file))).length
