/** An engine with only the puts and gets that a test provides. */
import { Effect } from "effect"
import type { BlobEngine } from "#actors/blob-storage/ports/engine.ts"
import { faultError } from "#actors/blob-storage/ports/fault.ts"
import { memoryEngine } from "#adapters/blob-storage/memory/engine.ts"
import type { BlobMeta } from "#schemas/blob-storage/blob.ts"
import { type BlobService, type BlobSetup, withBlobs } from "./service.ts"

export const mib = 1024 ** 2
export const id = "0123456789abcdef0123456789abcdef"
export const path = `/v1/blobs/${id}`

export const metaOf = (size: number): BlobMeta => ({
  size: BigInt(size),
  created_at: 1n,
  modified_at: 1n,
  checksum: "",
  labels: {},
  policy: "REPLICATION_POLICY_NONE",
})

export const never = () => new Promise<never>(() => undefined)
export const nothing = () =>
  Promise.reject(faultError({ _tag: "BlobStoreFailed", detail: "not here" }))

const engineWith = (given: Partial<BlobEngine>): BlobEngine => ({
  ...memoryEngine(),
  put: nothing,
  upload: () => ({ write: nothing, finish: nothing, abort: async () => undefined }),
  get: nothing,
  stat: nothing,
  delete: nothing,
  ...given,
})

export const run = (
  engine: Partial<BlobEngine>,
  setup: BlobSetup,
  body: (service: BlobService) => Promise<void>,
) =>
  withBlobs({ ...setup, engine: engineWith(engine) }, (service) =>
    Effect.promise(() => body(service)),
  )
