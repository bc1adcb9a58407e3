/**
 * Reading all of a copy: what whoever counts on one that it has not just written does first.
 *
 * Source: DECISIONS, document 1, integrity; decision 0125.
 */

import type { HeldCopy, NodeEngine } from "#actors/blob-storage/node-engine.ts"
import type { BlobId } from "#schemas/blob-storage/blob.ts"
import { type Pace, paced } from "./repair/rate.ts"

const at_once: Pace = () => undefined

/**
 * Answers the copy once all of it was read and is what was stored. What is not is set aside by
 * that: it rejects as `read` of the engine, with BlobNotFound and BlobCorrupt among others.
 */
export const readThrough = async (
  { read }: Pick<NodeEngine, "read">,
  id: BlobId,
  at: bigint,
  pace = at_once,
): Promise<HeldCopy> => {
  const { copy, data, windows } = await read(id, {}, at)
  const bytes = paced(data === undefined ? windows() : [data], pace)
  while (!(await bytes.next()).done);
  return copy
}
