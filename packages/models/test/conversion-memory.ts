/** The conversion's own program, which leaves its peak memory in bytes in a file when it ends. */
import { writeFileSync } from "node:fs"
import "../conversion.ts"

const [path = ""] = process.argv.slice(2)
process.once("exit", () => {
  writeFileSync(path, String(process.resourceUsage().maxRSS * 1024))
})
