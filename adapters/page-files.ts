/**
 * The built page as it goes over the wire, read once: its files are few, and never change while
 * they are served. Source: decisions of all services, "/".
 */
import { createHash } from "node:crypto"
import { readdirSync, readFileSync } from "node:fs"
import { extname, join } from "node:path"
import { constants, gzipSync } from "node:zlib"

/** Where `web/` is built, in the checkout. */
const built = join(import.meta.dirname, "..", "web", "dist")

/** Other files are not part of a page. */
const types: Readonly<Record<string, string>> = {
  ".css": "text/css; charset=utf-8",
  ".html": "text/html; charset=utf-8",
  ".ico": "image/x-icon",
  ".js": "text/javascript; charset=utf-8",
  ".json": "application/json",
  ".png": "image/png",
  ".svg": "image/svg+xml",
  ".webmanifest": "application/manifest+json",
  ".woff2": "font/woff2",
}
/** These are compressed already. */
const compressed = new Set([".png", ".woff2", ".ico"])
/** Digits of a tag: 132 bits of a SHA-256. */
const tag_digits = 22

const fileAt = (path: string) => {
  const bytes = readFileSync(path)
  const type = types[extname(path)]
  if (type === undefined) return undefined
  const zipped = gzipSync(bytes, { level: constants.Z_BEST_COMPRESSION })
  const is_worth_it = !compressed.has(extname(path)) && zipped.length < bytes.length
  const tag = createHash("sha256").update(bytes).digest("base64url").slice(0, tag_digits)
  return { bytes, gzip: is_worth_it ? zipped : null, tag, type }
}

/**
 * The page below `folder`: `index.html`, and by name the files of `assets`. Undefined where it was
 * not built. Throws where what is there cannot be read.
 */
export const pageFiles = (folder = built) => {
  try {
    const index = fileAt(join(folder, "index.html"))
    const entries = readdirSync(join(folder, "assets"), { withFileTypes: true })
    const assets = entries.flatMap((entry) => {
      const file = entry.isFile() ? fileAt(join(folder, "assets", entry.name)) : undefined
      return file === undefined ? [] : [[entry.name, file] as const]
    })
    return index && { index, assets: new Map(assets) }
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "ENOENT") return undefined
    throw error
  }
}
