/**
 * What the two threads of the plain blob store say to each other.
 */
import type { BlobUsage } from "#actors/blob-storage/blob-store.ts"
import type { Engine } from "./blob-files-engine.ts"
import type { BlobFault } from "#actors/blob-storage/blob-fault.ts"
import { chunk_bytes } from "./blob-files-format.ts"

/** An upload's bytes travel in frames of whole chunks, the last one excepted. */
export const frame_bytes = 4 * chunk_bytes
/** Frames of one upload between the threads or in the worker: 1 MiB of back-pressure. */
export const frames_in_flight_max = 4

/** The worker's first message. */
export type Started =
  | { readonly ok: true; readonly usage: BlobUsage }
  | { readonly ok: false; readonly fault: BlobFault }

export interface Call {
  readonly sequence: number
  readonly method: keyof Engine
  readonly parameters: ReadonlyArray<unknown>
}

export type Reply = { readonly sequence: number } & (
  | { readonly ok: true; readonly value: unknown }
  | { readonly ok: false; readonly fault: BlobFault }
)
