/** A local file of the registry, optionally gzipped. */
import { closeSync, createReadStream, openSync, readSync, statSync } from "node:fs"
import { basename } from "node:path"
import { createGunzip } from "node:zlib"
import type { CarrierFile } from "#adapters/carrier-search/import.ts"

/** Bytes per read: a tenth makes an import a fifth slower. */
const chunk_bytes = 262_144
const gzip_magic = Buffer.of(0x1f, 0x8b)

const isGzipped = (path: string) => {
  const descriptor = openSync(path, "r")
  try {
    const magic = Buffer.alloc(gzip_magic.length)
    return readSync(descriptor, magic) === magic.length && magic.equals(gzip_magic)
  } finally {
    closeSync(descriptor)
  }
}

async function* bytesOf(path: string, onRead: (bytes: number) => void) {
  const source = createReadStream(path, { highWaterMark: chunk_bytes })
  source.on("data", (chunk) => onRead(chunk.length))
  if (!isGzipped(path)) return yield* source
  const gunzip = createGunzip({ chunkSize: chunk_bytes })
  source.on("error", (error) => gunzip.destroy(error)).pipe(gunzip)
  try {
    yield* gunzip
  } finally {
    source.destroy()
  }
}

export interface OpenFile extends CarrierFile {
  /** Bytes on disk. */
  readonly size: number
}

/**
 * Opens a file for an import. `as_of` is RFC 3339, by default the time of the last modification,
 * never in the future. Throws if it does not exist or is not a file.
 */
export const carrierFile = (
  path: string,
  {
    as_of,
    now,
    onRead,
  }: {
    readonly as_of: string | undefined
    readonly now: Date
    readonly onRead: (bytes: number) => void
  },
): OpenFile => {
  const stats = statSync(path)
  if (!stats.isFile()) throw new Error(`${path} is not a file`)
  const modified = stats.mtime < now ? stats.mtime : now
  return {
    name: basename(path),
    size: stats.size,
    as_of: as_of ?? modified.toISOString(),
    bytes: () => bytesOf(path, onRead),
  }
}
