/** Facts of a volume as in its journal, for tests. */

import { BlobId } from "#schemas/blob-storage/blob.ts"
import { RecordFacts, type VolumeFact } from "#schemas/blob-storage/volume.ts"

export const blob = {
  id: BlobId.make("00112233445566778899aabbccddeeff"),
  size: 100,
  checksum: "c2hhMjU2",
  policy: "REPLICATION_POLICY_REPLICA3",
  at: "1763640000000000001",
  actor: "somebody",
  request_id: "request-1",
  correlation_id: "correlation-1",
} as const

export const fact = (cursor: number, kind: VolumeFact["kind"]): VolumeFact => ({
  ...blob,
  cursor,
  kind,
})

export const record = (from: number, ...facts: ReadonlyArray<VolumeFact>) =>
  RecordFacts.make({ from, to: facts.at(-1)?.cursor ?? from, facts })

export const bytesOf = (value: unknown) => new TextEncoder().encode(JSON.stringify(value)).length
