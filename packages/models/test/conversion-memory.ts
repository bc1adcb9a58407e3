/** The conversion program; writes its peak memory in bytes to a file on exit. */
import { writeFileSync } from "node:fs"
import { peakMemory } from "../../../test/world/peak-memory.ts"
import "../conversion.ts"

const [path = ""] = process.argv.slice(2)
process.once("exit", () => {
  writeFileSync(path, String(peakMemory()))
})
