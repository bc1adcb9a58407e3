/**
 * Run by a test: locks the data folder, starts a child, prints the child's process id, and keeps
 * running.
 */
import { spawn } from "node:child_process"
import { Effect } from "effect"
import { lockDataFolder } from "#adapters/data-folder/lock.ts"

const [, , data_dir = ""] = process.argv

await Effect.runPromise(
  Effect.scoped(
    Effect.gen(function* () {
      yield* lockDataFolder(data_dir)
      const child = spawn("sleep", ["60"], { stdio: "ignore", detached: true })
      process.stdout.write(`${child.pid}\n`)
      yield* Effect.never
    }),
  ),
)
