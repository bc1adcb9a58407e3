/** The threads that answer requests for blobs beside the process's own, where the store is here. */
import { Effect } from "effect"
import type { BlobWorkers, BlobWorkersOptions } from "#adapters/blob-storage/worker/workers.ts"
import { Identity } from "#gateway/identity.ts"
import { programBeside } from "#server/program-beside.ts"

const program = programBeside("blob-storage/blob-worker")

export interface StartWorkersOptions
  extends Omit<BlobWorkersOptions, "program" | "authenticate" | "desk"> {
  /** Undefined: no other thread is to answer here. */
  readonly desk: BlobWorkersOptions["desk"] | undefined
}

/** Starts those of `blob.workers`; `retire` sends their connections over to this thread. */
export const startWorkers = Effect.fnUntraced(function* (
  workers: BlobWorkers,
  { desk, ...options }: StartWorkersOptions,
) {
  if (desk === undefined) return { retire: () => undefined }
  const { authenticate } = yield* Identity
  return yield* workers.start({ ...options, program, desk, authenticate })
})
