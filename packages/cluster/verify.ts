/**
 * Verifies a whole copy before a node relies on it without having just written it.
 *
 * Source: DECISIONS, document 1, integrity; decision 0125.
 */

import type { HeldCopy, NodeEngine } from "#actors/blob-storage/ports/node-engine.ts"
import type { BlobId } from "#schemas/blob-storage/blob.ts"
import { type Pace, paced } from "./repair/rate.ts"

const unlimited: Pace = () => undefined

/**
 * Reads the whole copy and returns it if it is intact. Rejects as the engine's `read` does, for
 * example with BlobNotFound or BlobCorrupt; the read quarantines a corrupt copy.
 */
export const verifyCopy = async (
  { read }: Pick<NodeEngine, "read">,
  id: BlobId,
  at: bigint,
  pace = unlimited,
): Promise<HeldCopy> => {
  const { copy, data, windows } = await read(id, {}, at)
  const bytes = paced(data === undefined ? windows() : [data], pace)
  while (!(await bytes.next()).done);
  return copy
}
