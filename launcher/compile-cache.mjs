/** Preloaded by `node --import`: keeps compiled code, so that a second start is fast. */
import module from "node:module"
import { join } from "node:path"
import { cacheDirectory } from "./cache.mjs"

// Absent before Node 22, and a folder that cannot be written is no error: the start is slower.
module.enableCompileCache?.(join(cacheDirectory(), "compile"))
