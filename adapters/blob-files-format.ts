/**
 * One blob's file: its bytes, a CRC-32 for each 64 KiB of them, and a footer, so that the file can
 * be verified alone, whole or any stretch of it.
 *
 * Footer, little endian: magic 8 bytes, chunk size u32, blob size u64, BLAKE3-256 32 bytes, CRC-32
 * of the footer so far u32. A chunk's CRC starts from the chunk's number, so that a chunk in
 * another's place does not pass.
 */
import { crc32 } from "node:zlib"

/** The stretch that one CRC covers: measured as the point of full speed. */
export const chunk_bytes = 64 * 1024
/** What is read, verified and handed on at once: the most that a GetChunk may hold. */
export const window_bytes = 15 * chunk_bytes
export const footer_bytes = 56

const magic = Buffer.from("ALMBLOB1", "latin1")
const crc_bytes = 4

export interface Footer {
  readonly size: number
  /** BLAKE3-256 of the bytes, in base64. */
  readonly checksum: string
}

export const chunkCount = (size: number) => Math.ceil(size / chunk_bytes)

/** Where the table of CRCs has the entry of a chunk. */
export const tablePosition = (size: number, chunk: number) => size + crc_bytes * chunk

/** The length of a file that holds a blob of `size` bytes. */
export const fileBytes = (size: number) => tablePosition(size, chunkCount(size)) + footer_bytes

/** The CRCs of bytes that begin with chunk `first_chunk`, as the table holds them. */
export const tableOf = (bytes: Uint8Array, first_chunk: number) => {
  const table = Buffer.alloc(crc_bytes * chunkCount(bytes.length))
  for (let chunk = 0; chunk * chunk_bytes < bytes.length; chunk++) {
    const stretch = bytes.subarray(chunk * chunk_bytes, (chunk + 1) * chunk_bytes)
    table.writeUInt32LE(crc32(stretch, (first_chunk + chunk) >>> 0), crc_bytes * chunk)
  }
  return table
}

export const encodeFooter = ({ size, checksum }: Footer) => {
  const footer = Buffer.alloc(footer_bytes)
  magic.copy(footer)
  footer.writeUInt32LE(chunk_bytes, 8)
  footer.writeBigUInt64LE(BigInt(size), 12)
  Buffer.from(checksum, "base64").copy(footer, 20)
  footer.writeUInt32LE(crc32(footer.subarray(0, 52)), 52)
  return footer
}

/** What the footer says, or undefined where it is not one of ours or is damaged. */
export const decodeFooter = (footer: Buffer): Footer | undefined => {
  if (footer.length !== footer_bytes || !footer.subarray(0, 8).equals(magic)) return undefined
  if (footer.readUInt32LE(52) !== crc32(footer.subarray(0, 52))) return undefined
  if (footer.readUInt32LE(8) !== chunk_bytes) return undefined
  return {
    size: Number(footer.readBigUInt64LE(12)),
    checksum: footer.subarray(20, 52).toString("base64"),
  }
}
