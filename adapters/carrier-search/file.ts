/** A file of the registry on this machine's disk, packed by gzip or not. */
import { closeSync, createReadStream, openSync, readSync, statSync } from "node:fs"
import { basename } from "node:path"
import { createGunzip } from "node:zlib"
import type { CarrierFile } from "#adapters/carrier-search/import.ts"

/** Bytes read at a time: with a tenth of it a whole import takes a fifth longer. */
const chunk_bytes = 262_144
const gzip_magic = Buffer.of(0x1f, 0x8b)

const isPacked = (path: string) => {
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
  if (!isPacked(path)) return yield* source
  const unpacked = createGunzip({ chunkSize: chunk_bytes })
  source.on("error", (error) => unpacked.destroy(error)).pipe(unpacked)
  try {
    yield* unpacked
  } finally {
    source.destroy()
  }
}

export interface OpenFile extends CarrierFile {
  /** On the disk. */
  readonly size: number
}

/**
 * A file as an import reads it; `as_of` in RFC 3339, otherwise when it was last written, and never
 * in the future. Throws where it is not there or is none.
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
  if (!stats.isFile()) throw new Error(`${path} is no file`)
  const written = stats.mtime < now ? stats.mtime : now
  return {
    name: basename(path),
    size: stats.size,
    as_of: as_of ?? written.toISOString(),
    bytes: () => bytesOf(path, onRead),
  }
}
