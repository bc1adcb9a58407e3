/**
 * Sets how far this process's heap may grow before a full collection.
 *
 * The bytes of requests are outside V8's heap, and by default V8 collects the whole heap for every
 * 64 MB of them. The first flag counts them as part of the heap instead, so that they wait for the
 * next regular collection. After idle time that collection would begin as soon as memory exceeds
 * the live memory by a tenth, which a single get of 16 MiB does; with the second flag it begins at
 * twice the live memory.
 *
 * Source: decisions 0116, 0198, 0202.
 */
import { setFlagsFromString } from "node:v8"

/** Sets the growth of the heap for the lifetime of this process. */
export const growHeap = () => {
  setFlagsFromString("--external-memory-accounted-in-global-limit")
  setFlagsFromString("--heap-growing-percent=100")
}
