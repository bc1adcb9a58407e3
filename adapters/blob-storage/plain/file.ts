/**
 * One blob's file in a store of plain files: its bytes, a CRC-32 for each 64 KiB of them, and a
 * footer. Read whole, and every byte verified.
 *
 * Footer, little endian: magic 8 bytes, chunk size u32, blob size u64, BLAKE3-256 32 bytes, CRC-32
 * of the footer so far u32. A chunk's CRC starts from the chunk's number, so that a chunk in
 * another's place does not pass.
 */
import { type FileHandle, open } from "node:fs/promises"
import { crc32 } from "node:zlib"
import { Blake3Hasher } from "@napi-rs/blake-hash"
import { codeOf, thrown } from "#actors/blob-storage/blobs/fault.ts"
import type { BlobId } from "#schemas/blob-storage/blob.ts"

/** The stretch that one CRC covers, and what is read at once. */
const chunk_bytes = 64 * 1024
const window_bytes = 15 * chunk_bytes
const footer_bytes = 56
const footer_crc_position = 52
const crc_bytes = 4

const magic = Buffer.from("ALMBLOB1", "latin1")

export interface StoredFile {
  readonly id: BlobId
  readonly size: number
  /** BLAKE3-256 in base64. */
  readonly checksum: string
}

const corrupt = ({ id }: StoredFile, detail: string) => thrown({ _tag: "BlobCorrupt", id, detail })

/** All of the bytes there, however many calls it takes. */
const readAt = async (file: FileHandle, blob: StoredFile, position: number, length: number) => {
  const bytes = Buffer.allocUnsafe(length)
  let done = 0
  while (done < length) {
    const { bytesRead } = await file.read(bytes, done, length - done, position + done)
    if (bytesRead === 0) throw corrupt(blob, "The file ends too early.")
    done += bytesRead
  }
  return bytes
}

const verifyFooter = async (file: FileHandle, blob: StoredFile) => {
  const { size } = await file.stat()
  const table_bytes = crc_bytes * Math.ceil(blob.size / chunk_bytes)
  if (size !== blob.size + table_bytes + footer_bytes) {
    throw corrupt(blob, `The file has ${size} bytes.`)
  }
  const footer = await readAt(file, blob, size - footer_bytes, footer_bytes)
  const is_whole =
    footer.subarray(0, magic.length).equals(magic) &&
    footer.readUInt32LE(footer_crc_position) === crc32(footer.subarray(0, footer_crc_position)) &&
    footer.readUInt32LE(8) === chunk_bytes
  if (!is_whole) throw corrupt(blob, "The footer is damaged.")
  const is_its_own =
    footer.readBigUInt64LE(12) === BigInt(blob.size) &&
    footer.toString("base64", 20, footer_crc_position) === blob.checksum
  if (!is_its_own) throw corrupt(blob, "The footer is that of another blob.")
}

/** The bytes of a window, which begins with a chunk, each chunk equal to its CRC. */
const verifiedWindow = async (file: FileHandle, blob: StoredFile, start: number) => {
  const bytes = await readAt(file, blob, start, Math.min(window_bytes, blob.size - start))
  const first = start / chunk_bytes
  const chunks = Math.ceil(bytes.length / chunk_bytes)
  const table = await readAt(file, blob, blob.size + crc_bytes * first, crc_bytes * chunks)
  for (let chunk = 0; chunk < chunks; chunk++) {
    const stretch = bytes.subarray(chunk * chunk_bytes, (chunk + 1) * chunk_bytes)
    if (crc32(stretch, (first + chunk) >>> 0) === table.readUInt32LE(crc_bytes * chunk)) continue
    throw corrupt(blob, `Bytes from ${start + chunk * chunk_bytes} do not match their checksum.`)
  }
  return bytes
}

/**
 * The blob's bytes in windows, each verified, the last one only after the whole blob was. Throws a
 * fault BlobCorrupt where the file is damaged, another blob's, or gone.
 */
export const readPlainFile = async function* (
  path: string,
  blob: StoredFile,
): AsyncGenerator<Uint8Array, void> {
  const file = await open(path, "r").catch((cause: unknown) => {
    if (codeOf(cause) === "ENOENT") throw corrupt(blob, "The blob's file is gone.")
    throw cause
  })
  try {
    await verifyFooter(file, blob)
    const hasher = new Blake3Hasher()
    for (let start = 0; start < blob.size; start += window_bytes) {
      const window = await verifiedWindow(file, blob, start)
      hasher.update(window)
      const is_last = start + window.length === blob.size
      if (is_last && hasher.digest("base64") !== blob.checksum) {
        throw corrupt(blob, "The bytes do not match the blob's checksum.")
      }
      yield window
    }
  } finally {
    await file.close()
  }
}
