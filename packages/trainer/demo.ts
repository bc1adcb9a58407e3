/** Leaves that are drawn for a training, in a thread of their own, and leaves held back from it. */
import { Worker } from "node:worker_threads"
import { demo_classes, not_a_leaf } from "./leaves/leaf.ts"
import type { Wanted } from "./leaves/leaf-thread.ts"
import { negative_kinds } from "./leaves/negative.ts"
import { seedOf } from "./leaves/noise.ts"
import { inMemory, type Pictures } from "./pictures.ts"

const program = new URL("./leaves/leaf-thread.ts", import.meta.url)

/** Of each class one, and of what is no leaf two: it has more kinds than a class has. */
const turns = demo_classes.length + 1
const last = demo_classes.indexOf(not_a_leaf)

/** Labels of `count` pictures: each class in turn. */
const labelsOf = (count: number) =>
  Uint16Array.from({ length: count }, (_, i) => Math.min(last, i % turns))

/** Streams of seeds that no epoch has. */
const held_out_stream = 1_000_001
const negative_stream = 1_000_002

const seedsOf = (seed: number, stream: number, count: number) => {
  const own = seedOf(seed, stream)
  return Uint32Array.from({ length: count }, (_, i) => seedOf(own, i))
}

export interface DemoPictures {
  /** So many fresh leaves: other ones each epoch. */
  readonly epoch: (epoch: number, count: number) => Promise<Pictures>
  /** Pictures of all classes that no epoch has. */
  readonly heldOut: (count: number) => Promise<Pictures>
  /** Pictures without a leaf, of one kind. */
  readonly negatives: (kind: string, count: number) => Promise<Pictures>
  readonly close: () => Promise<unknown>
}

/** Draws in one thread, one request after the other. A thread that fails fails all that wait. */
export const demoPictures = (seed: number): DemoPictures => {
  const thread = new Worker(program)
  const waiting: Array<PromiseWithResolvers<Uint8Array>> = []
  thread.on("message", (bytes: Uint8Array) => waiting.shift()?.resolve(bytes))
  thread.on("error", (error) => {
    for (const one of waiting.splice(0)) one.reject(error)
  })
  const drawn = async (wanted: Wanted) => {
    const answer = Promise.withResolvers<Uint8Array>()
    waiting.push(answer)
    thread.postMessage(wanted)
    return inMemory(wanted.labels, await answer.promise)
  }
  const mixed = (stream: number, count: number) =>
    drawn({
      labels: labelsOf(count),
      seeds: seedsOf(seed, stream, count),
      kinds: negative_kinds.trained,
    })
  return {
    epoch: mixed,
    heldOut: (count) => mixed(held_out_stream, count),
    negatives: (kind, count) =>
      drawn({
        labels: new Uint16Array(count).fill(last),
        seeds: seedsOf(seed, negative_stream, count),
        kinds: [kind],
      }),
    close: () => thread.terminate(),
  }
}
