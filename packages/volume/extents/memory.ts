/**
 * Memory for bytes on their way to the disk. Its pieces start on a page boundary, which direct I/O
 * requires, and are reused, because new memory costs the kernel more than copying into it.
 */

/** Size of a piece: BLAKE3 and CRC32C reach full speed on it, and two pieces fit a core's cache. */
export const memory_piece_bytes = 256 * 1024
/** Alignment of direct writes. */
const page_bytes = 4096
/** Pieces allocated at once. */
const arena_pieces = 32
/**
 * 64 MiB: sixteen uploads with four writes of 1 MiB in flight. Further pieces are allocated one by
 * one.
 */
const arenas_max = 8
const wasm_page_bytes = 64 * 1024

/** Buffers that start on a page boundary. */
const aligned = new WeakSet<ArrayBufferLike>()

/** Node promises page alignment only for the memory of WebAssembly. */
const alignedMemory = (bytes: number) => {
  const pages = Math.ceil(bytes / wasm_page_bytes)
  const { buffer } = new WebAssembly.Memory({ initial: pages, maximum: pages })
  aligned.add(buffer)
  return buffer
}

/** Unwritten bytes of each piece of an arena. */
const arenas = new Map<ArrayBufferLike, Float64Array>()
const spare: Array<Buffer> = []

const addArena = () => {
  const arena = alignedMemory(arena_pieces * memory_piece_bytes)
  arenas.set(arena, new Float64Array(arena_pieces))
  for (let n = 0; n < arena_pieces; n++) {
    spare.push(Buffer.from(arena, n * memory_piece_bytes, memory_piece_bytes))
  }
}

/** A piece of `memory_piece_bytes`, with arbitrary content. */
export const takePiece = (): Buffer => {
  if (spare.length === 0 && arenas.size < arenas_max) addArena()
  return spare.pop() ?? Buffer.allocUnsafeSlow(memory_piece_bytes)
}

/** Lends the start of a piece for a write, until `giveBack`. */
export const lendPiece = ({ buffer, byteOffset, length }: Uint8Array) => {
  const unwritten = arenas.get(buffer)
  if (unwritten) unwritten[byteOffset / memory_piece_bytes] = length
}

/** Returns parts of lent pieces that were written, or never will be. Ignores other memory. */
export const giveBack = (parts: ReadonlyArray<Uint8Array>) => {
  for (const { buffer, byteOffset, length } of parts) {
    const unwritten = arenas.get(buffer)
    if (!unwritten || length === 0) continue
    const n = Math.floor(byteOffset / memory_piece_bytes)
    const left = (unwritten[n] ?? 0) - length
    unwritten[n] = left
    if (left < 0) throw new Error("bytes were returned twice")
    if (left === 0) spare.push(Buffer.from(buffer, n * memory_piece_bytes, memory_piece_bytes))
  }
}

/**
 * Gathers the bytes of a large blob into pieces, each hashed and written as a whole. `take` must
 * return each piece (`giveBack`). The last piece needs `flush` or `drop`.
 *
 * A socket delivers parts of about 64 KiB at any alignment. BLAKE3 hashes such parts at a quarter
 * of its speed, because they do not align with its chunks (8.4 ms for 16 MiB instead of 2.3), and
 * the disk takes them only through the page cache. Copying them takes 0.3 ms.
 */
export const makeGatherer = (take: (piece: Uint8Array) => void) => {
  let piece: Buffer | undefined
  let filled = 0

  const lend = () => {
    const full = piece?.subarray(0, filled)
    piece = undefined
    filled = 0
    if (full) lendPiece(full)
    return full
  }
  const flush = () => {
    const full = lend()
    if (full) take(full)
  }
  return {
    push: (bytes: Uint8Array) => {
      for (let at = 0; at < bytes.length; ) {
        piece ??= takePiece()
        const count = Math.min(memory_piece_bytes - filled, bytes.length - at)
        piece.set(count === bytes.length ? bytes : bytes.subarray(at, at + count), filled)
        at += count
        filled += count
        if (filled === memory_piece_bytes) flush()
      }
    },
    flush,
    drop: () => {
      const full = lend()
      if (full) giveBack([full])
    },
  }
}

/** Page-aligned zeros. They must not be changed, because all users share them. */
export const alignedZeros = (length: number): Uint8Array =>
  new Uint8Array(alignedMemory(length), 0, length)

/** Whether the bytes start and end on a page boundary of memory. */
export const isAligned = ({ buffer, byteOffset, length }: Uint8Array) =>
  aligned.has(buffer) && byteOffset % page_bytes === 0 && length % page_bytes === 0

/**
 * Copies bytes to a lent piece, padded with zeros to a page. Data that follows whole pages, such as
 * a CRC table, can then bypass the page cache in the same write.
 */
export const alignedCopy = (bytes: Uint8Array): Uint8Array => {
  const length = Math.ceil(bytes.length / page_bytes) * page_bytes
  if (length > memory_piece_bytes) return bytes
  const paged = takePiece().subarray(0, length)
  paged.set(bytes)
  paged.fill(0, bytes.length)
  lendPiece(paged)
  return paged
}

/** Pieces ready for use, and pieces ever allocated. */
export const pieceCounts = () => ({ spare: spare.length, made: arenas.size * arena_pieces })
