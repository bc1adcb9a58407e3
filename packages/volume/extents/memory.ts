/**
 * Memory for bytes on their way to the disk: pieces that begin with a page, since only such memory
 * may be written past the page cache, and that are used again, since new memory costs the kernel
 * more than copying into it.
 */

/** One piece: BLAKE3 and CRC32C have their full speed on it, and two of them fit a core's cache. */
export const memory_piece_bytes = 256 * 1024
/** What a disk's direct writes have to begin and end with. */
const page_bytes = 4096
/** Pieces that are made at once. */
const arena_pieces = 32
/** 64 MiB: sixteen uploads with four writes of 1 MiB under way. More take memory of their own. */
const arenas_max = 8
const wasm_page_bytes = 64 * 1024

/** Memory that begins with a page. */
const aligned = new WeakSet<ArrayBufferLike>()

/** That of WebAssembly is the only one of which Node promises it. */
const pagedMemory = (bytes: number) => {
  const pages = Math.ceil(bytes / wasm_page_bytes)
  const { buffer } = new WebAssembly.Memory({ initial: pages, maximum: pages })
  aligned.add(buffer)
  return buffer
}

/** The bytes of each piece of an arena that are still to be written. */
const arenas = new Map<ArrayBufferLike, Float64Array>()
const spare: Array<Buffer> = []

const addArena = () => {
  const arena = pagedMemory(arena_pieces * memory_piece_bytes)
  arenas.set(arena, new Float64Array(arena_pieces))
  for (let n = 0; n < arena_pieces; n++) {
    spare.push(Buffer.from(arena, n * memory_piece_bytes, memory_piece_bytes))
  }
}

/** A piece of `memory_piece_bytes`, which holds anything. */
export const takePiece = (): Buffer => {
  if (spare.length === 0 && arenas.size < arenas_max) addArena()
  return spare.pop() ?? Buffer.allocUnsafeSlow(memory_piece_bytes)
}

/** So much of a piece, from its beginning, is to be written, and then `giveBack` is told. */
export const lendPiece = ({ buffer, byteOffset, length }: Uint8Array) => {
  const unwritten = arenas.get(buffer)
  if (unwritten) unwritten[byteOffset / memory_piece_bytes] = length
}

/** These stretches of lent pieces were written, or never will be; others are not minded. */
export const giveBack = (parts: ReadonlyArray<Uint8Array>) => {
  for (const { buffer, byteOffset, length } of parts) {
    const unwritten = arenas.get(buffer)
    if (!unwritten || length === 0) continue
    const n = Math.floor(byteOffset / memory_piece_bytes)
    const left = (unwritten[n] ?? 0) - length
    unwritten[n] = left
    if (left < 0) throw new Error("bytes were given back twice")
    if (left === 0) spare.push(Buffer.from(buffer, n * memory_piece_bytes, memory_piece_bytes))
  }
}

/** So many zeros that begin with a page. Nobody may change them: whoever fills a file has them. */
export const pagedZeros = (length: number): Uint8Array =>
  new Uint8Array(pagedMemory(length), 0, length)

/** Whether these bytes begin and end with a page of memory. */
export const isPaged = ({ buffer, byteOffset, length }: Uint8Array) =>
  aligned.has(buffer) && byteOffset % page_bytes === 0 && length % page_bytes === 0

/**
 * These bytes in a lent piece, with zeros up to the end of a page: what is written behind whole
 * pages goes with them past the page cache, and asks no thread for a write of its own.
 */
export const pagedCopy = (bytes: Uint8Array): Uint8Array => {
  const length = Math.ceil(bytes.length / page_bytes) * page_bytes
  if (length > memory_piece_bytes) return bytes
  const paged = takePiece().subarray(0, length)
  paged.set(bytes)
  paged.fill(0, bytes.length)
  lendPiece(paged)
  return paged
}

/** Pieces that wait for use, of those that were ever made. */
export const pieceCounts = () => ({ spare: spare.length, made: arenas.size * arena_pieces })
