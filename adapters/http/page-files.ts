/**
 * The built pages, prepared for responses. They are few and do not change, so they are read once.
 * Source: decisions of all services, "/".
 */
import { createHash } from "node:crypto"
import { existsSync, readdirSync, readFileSync } from "node:fs"
import { extname, join } from "node:path"
import { constants, gzipSync } from "node:zlib"
import { type PagePath, pagesOf } from "#schemas/system/page.ts"

/** The build output of `web/` in the checkout. */
const dist_folder = join(import.meta.dirname, "../..", "web", "dist")

/** Content types; files with other extensions are not served. */
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
/** These formats are already compressed. */
const compressed = new Set([".png", ".woff2", ".ico"])
/** Digits of an entity tag: 132 bits of a SHA-256. */
const tag_digits = 22

const tagOf = (bytes: Uint8Array) =>
  createHash("sha256").update(bytes).digest("base64url").slice(0, tag_digits)

/** Bytes with their entity tag, and gzipped if that is smaller. */
export const compress = (bytes: Uint8Array) => {
  const zipped = gzipSync(bytes, { level: constants.Z_BEST_COMPRESSION })
  return { bytes, gzip: zipped.length < bytes.length ? zipped : null, tag: tagOf(bytes) }
}

const fileOf = (bytes: Uint8Array, ending: string) => {
  const type = types[ending]
  if (type === undefined) return undefined
  if (compressed.has(ending)) return { bytes, gzip: null, tag: tagOf(bytes), type }
  return { ...compress(bytes), type }
}
type PageFile = NonNullable<ReturnType<typeof fileOf>>

const pages_attribute = /(?<=\sdata-pages=")[^"]*(?=")/

/** A page with the list of all served pages, for navigation. */
const htmlAt = (path: string, served: ReadonlyArray<PagePath>): PageFile | undefined => {
  if (!existsSync(path)) return undefined
  const html = readFileSync(path, "utf8").replace(pages_attribute, served.join(" "))
  return fileOf(Buffer.from(html), ".html")
}

/**
 * The pages of these services by path, and the files of `assets` below `folder` by name. Undefined
 * if the services have no pages or none are built. Throws if a file cannot be read.
 */
export const pageFiles = (services: ReadonlyArray<string>, folder = dist_folder) => {
  const served = pagesOf(services)
  const paths = served.map(({ path }) => path)
  const html = new Map(
    served.flatMap(({ path, file }) => {
      const found = htmlAt(join(folder, file), paths)
      return found === undefined ? [] : [[path, found] as const]
    }),
  )
  if (html.size === 0) return undefined
  const entries = readdirSync(join(folder, "assets"), { withFileTypes: true })
  const assets = entries.flatMap((entry) => {
    const path = join(folder, "assets", entry.name)
    const file = entry.isFile() ? fileOf(readFileSync(path), extname(path)) : undefined
    return file === undefined ? [] : [[entry.name, file] as const]
  })
  return { html, assets: new Map(assets) }
}
