/**
 * Checksums of a blob's bytes, one per chunk of 64 KiB, so that any part can be verified alone.
 *
 * A chunk's CRC32C is seeded with the chunk's number in the blob, so that a misplaced chunk does
 * not match. A table holds them as little-endian u32.
 */
import { crc32c } from "@node-rs/crc32"

/** Bytes per CRC: measured as the size with full speed. */
export const chunk_bytes = 64 * 1024
/** Bytes read, verified and returned at once: the maximum of a GetChunk. */
export const window_bytes = 15 * chunk_bytes
export const crc_bytes = 4

export const chunkCount = (bytes: number) => Math.ceil(bytes / chunk_bytes)
export const tableBytes = (bytes: number) => crc_bytes * chunkCount(bytes)

/** The CRC of a chunk's bytes so far, continued from `before`, or from the chunk's number. */
export const chunkCrc = (bytes: Uint8Array, before: number) => crc32c(bytes, before >>> 0)

/**
 * Computes the CRCs of a blob that arrives in parts of any size, and keeps those not taken yet: 64
 * KiB for 1 GiB of an extent. The first byte belongs to chunk `first_chunk` of the blob.
 */
export const makeChunkTable = (first_chunk = 0) => {
  let table = Buffer.allocUnsafe(1024)
  let used = 0
  /** The chunk being filled, by its number in the blob, and the CRC of its bytes so far. */
  let chunk = first_chunk
  let filled = 0
  let crc = chunk

  const push = (value: number) => {
    if (used + crc_bytes > table.length) {
      const larger = Buffer.allocUnsafe(2 * table.length)
      table.copy(larger, 0, 0, used)
      table = larger
    }
    table.writeUInt32LE(value, used)
    used += crc_bytes
  }
  const close = () => {
    push(crc)
    chunk += 1
    filled = 0
    crc = chunk
  }
  const update = (bytes: Uint8Array) => {
    for (let at = 0; at < bytes.length; ) {
      const count = Math.min(chunk_bytes - filled, bytes.length - at)
      const is_all = count === bytes.length
      crc = chunkCrc(is_all ? bytes : bytes.subarray(at, at + count), crc)
      at += count
      filled += count
      if (filled === chunk_bytes) close()
    }
  }
  /** Takes the CRCs of the next `bytes`, which are whole chunks unless they are the blob's last. */
  const take = (bytes: number) => {
    const wanted = tableBytes(bytes)
    if (wanted > used && filled > 0) close()
    if (wanted > used) throw new Error(`no CRCs for ${bytes} bytes`)
    const taken = Buffer.from(table.subarray(0, wanted))
    table.copyWithin(0, wanted, used)
    used -= wanted
    return taken
  }
  return { update, take }
}

/** The number of the first chunk that does not match the table. Undefined: all match. */
export const firstMismatch = (
  bytes: Uint8Array,
  first_chunk: number,
  table: DataView,
  entry = 0,
): number | undefined => {
  for (let at = 0, n = 0; at < bytes.length; at += chunk_bytes, n++) {
    const chunk = first_chunk + n
    const span = bytes.length <= chunk_bytes ? bytes : bytes.subarray(at, at + chunk_bytes)
    if (chunkCrc(span, chunk) !== table.getUint32(crc_bytes * (entry + n), true)) return chunk
  }
  return undefined
}
