/**
 * Load on an HTTP server: by wrk if it is installed, otherwise by http-load.ts; pinned to a
 * separate core.
 */
import { type ChildProcess, spawn, spawnSync } from "node:child_process"
import { once } from "node:events"
import { writeFile } from "node:fs/promises"
import { availableParallelism } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import type { Round } from "../harness/round.ts"
import type { Load, LoadAnswer } from "./http-load.ts"

const has = (program: string, flag: string) => !spawnSync(program, [flag]).error

const wrk = has("wrk", "-v")
const taskset = has("taskset", "--version")

/** The load tool, as named in the table. */
export const load_tool = wrk ? "wrk" : "a client of our own over plain sockets"

/** On the last core, so that the scheduler gives the server the others. */
const pinned = (program: string, flags: ReadonlyArray<string>): [string, Array<string>] => {
  const last = String(availableParallelism() - 1)
  return taskset ? ["taskset", ["-c", last, program, ...flags]] : [program, [...flags]]
}

/** One round of load. The token goes through a file in `folder` or a pipe, never through argv. */
export const applyLoad = (load: Load, folder: string): Promise<Round> =>
  wrk ? byWrk(load, folder) : byClient(load)

const byClient = async (load: Load): Promise<Round> => {
  const path = fileURLToPath(new URL("http-load.ts", import.meta.url))
  const [program, flags] = pinned(process.execPath, [path])
  const child: ChildProcess = spawn(program, flags, {
    stdio: ["ignore", "ignore", "inherit", "ipc"],
  })
  const answered = once(child, "message")
  const gone = once(child, "exit").then(() => [{ failed: "the load client ended" }])
  child.send(load)
  // http-load.ts sends one message, a LoadAnswer.
  const [answer] = (await Promise.race([answered, gone])) as [LoadAnswer]
  if ("failed" in answer) throw new Error(answer.failed)
  return answer.round
}

/** Prints its figures as one line of JSON, because wrk's own output is not JSON. */
const script = (token: string) => `wrk.headers["Authorization"] = "Bearer ${token}"
wrk.headers["Accept"] = "application/json"
done = function(summary, latency, requests)
  io.write(string.format('\\n{"runs":%d,"us":%d,"p50":%d,"p99":%d,"bad":%d}\\n',
    summary.requests, summary.duration, latency:percentile(50), latency:percentile(99),
    summary.errors.status + summary.errors.connect + summary.errors.read + summary.errors.timeout))
end
`

const byWrk = async ({ url, token, connections, seconds }: Load, folder: string) => {
  const path = join(folder, "wrk.lua")
  await writeFile(path, script(token), { mode: 0o600 })
  const duration = `-d${Math.max(1, Math.round(seconds))}s`
  const [program, flags] = pinned("wrk", ["-t1", `-c${connections}`, duration, "-s", path, url])
  const child = spawn(program, flags, { stdio: ["ignore", "pipe", "inherit"] })
  let text = ""
  for await (const chunk of child.stdout) text += String(chunk)
  const line = text.split("\n").find((each) => each.startsWith("{"))
  if (!line) throw new Error("wrk printed no figures")
  const { runs, us, p50, p99, bad } = JSON.parse(line)
  if (bad > 0) throw new Error(`${bad} of ${runs} requests failed`)
  return { runs, runs_per_s: runs / (us / 1e6), p50_ms: p50 / 1000, p99_ms: p99 / 1000 }
}
