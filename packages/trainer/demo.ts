/** Draws the demo's pictures in a thread: those for training and those that are held out. */
import { Worker } from "node:worker_threads"
import { demo_classes, not_a_leaf } from "./leaves/leaf.ts"
import type { DrawRequest } from "./leaves/leaf-thread.ts"
import { negative_kinds } from "./leaves/negative.ts"
import { seedOf } from "./leaves/noise.ts"
import { inMemory, type Pictures } from "./pictures.ts"

const program = new URL("./leaves/leaf-thread.ts", import.meta.url)

/** One picture of each class in turn, but two of not_a_leaf, which has more kinds. */
const cycle = demo_classes.length + 1
const last = demo_classes.indexOf(not_a_leaf)

/** The labels of `count` pictures. */
const labelsOf = (count: number) =>
  Uint16Array.from({ length: count }, (_, i) => Math.min(last, i % cycle))

/** Seed streams that no epoch uses. */
const held_out_stream = 1_000_001
const negative_stream = 1_000_002

const seedsOf = (seed: number, stream: number, count: number) => {
  const stream_seed = seedOf(seed, stream)
  return Uint32Array.from({ length: count }, (_, i) => seedOf(stream_seed, i))
}

export interface DemoPictures {
  /** New pictures for each epoch. */
  readonly epoch: (epoch: number, count: number) => Promise<Pictures>
  /** Pictures of all classes that are in no epoch. */
  readonly heldOut: (count: number) => Promise<Pictures>
  /** Pictures without a leaf, of one kind. */
  readonly negatives: (kind: string, count: number) => Promise<Pictures>
  readonly close: () => Promise<unknown>
}

/** Draws in one thread, one request at a time. If the thread fails, all pending requests fail. */
export const demoPictures = (seed: number): DemoPictures => {
  const thread = new Worker(program)
  const pending: Array<PromiseWithResolvers<Uint8Array>> = []
  thread.on("message", (bytes: Uint8Array) => pending.shift()?.resolve(bytes))
  thread.on("error", (error) => {
    for (const one of pending.splice(0)) one.reject(error)
  })
  const draw = async (request: DrawRequest) => {
    const response = Promise.withResolvers<Uint8Array>()
    pending.push(response)
    thread.postMessage(request)
    return inMemory(request.labels, await response.promise)
  }
  const drawMixed = (stream: number, count: number) =>
    draw({
      labels: labelsOf(count),
      seeds: seedsOf(seed, stream, count),
      kinds: negative_kinds.trained,
    })
  return {
    epoch: drawMixed,
    heldOut: (count) => drawMixed(held_out_stream, count),
    negatives: (kind, count) =>
      draw({
        labels: new Uint16Array(count).fill(last),
        seeds: seedsOf(seed, negative_stream, count),
        kinds: [kind],
      }),
    close: () => thread.terminate(),
  }
}
