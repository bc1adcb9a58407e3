/** Run by a test: starts the program of its arguments under a guard, prints its id, and waits. */
import { spawnGuarded } from "../guarded-process.ts"

const [, , program = "", ...args] = process.argv

const child = spawnGuarded(program, args, { env: {}, stdio: ["ignore", "ignore", "ignore"] })
process.stdout.write(`${child.pid}\n`)
setInterval(() => undefined, 60_000)
