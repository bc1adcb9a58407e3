/** A pool of pieces that detects reads of returned memory. */
import { type PiecePool, piece_bytes } from "../../erasure/layout.ts"

/** No blob of a test contains this many of it in a row. */
const poison = 0xee

/** Reuses returned pieces, which were overwritten. */
export const poisoningPool = () => {
  const spare: Array<Uint8Array> = []
  const counts = { taken: 0, given_back: 0 }
  const pool: PiecePool = {
    acquire: () => {
      counts.taken += 1
      return spare.pop() ?? new Uint8Array(piece_bytes)
    },
    release: (pieces) => {
      for (const { buffer } of pieces) {
        counts.given_back += 1
        const piece = new Uint8Array(buffer)
        spare.push(piece.fill(poison))
      }
    },
  }
  return { pool, counts }
}
