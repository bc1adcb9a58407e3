/** Preloaded by `node --import`: keeps compiled code, so that a second start is fast. */
import module from "node:module"
import { compileCache } from "./cache.mjs"

const folder = compileCache()
// Absent before Node 22, and a folder that cannot be written is no error: the start is slower.
module.enableCompileCache?.(folder)
// Threads, which run the sources, keep theirs where the environment says; so do child processes.
process.env.NODE_COMPILE_CACHE ??= folder
