/** Preloaded by `node --import`: enables Node's compile cache, so that later starts are faster. */
import module from "node:module"
import { compileCache } from "./cache.mjs"

const folder = compileCache()
// Missing before Node 22. If the folder is not writable, starts are only slower.
module.enableCompileCache?.(folder)
// Threads and child processes read the folder from the environment.
process.env.NODE_COMPILE_CACHE ??= folder
