/** Suite 8: the memory of an idle agent compared with an idle Node process. */
import { spawn } from "node:child_process"
import { readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { setTimeout as pause } from "node:timers/promises"
import { machine } from "../harness/machine.ts"
import { median } from "../harness/round.ts"
import type { Suite } from "../harness/suite.ts"
import { startGateway } from "./almanac-gateway.ts"

/** Milliseconds for an agent to boot, and then to become idle. */
const boot_ms_max = 30_000
const rest_ms = 5_000
const look_ms = 100

const read = (path: string) => {
  try {
    return readFileSync(path, "utf8")
  } catch {
    return ""
  }
}

/** Resident memory of the process in megabytes, including shared pages. */
const residentOf = (pid: number) =>
  Number(/^VmRSS:\s+(\d+) kB$/m.exec(read(`/proc/${pid}/status`))?.[1]) / 1000

const parentOf = (pid: number) => Number(read(`/proc/${pid}/stat`).split(") ")[1]?.split(" ")[1])

const agentOf = (server: number) =>
  readdirSync("/proc")
    .map(Number)
    .find(
      (pid) => parentOf(pid) === server && read(`/proc/${pid}/cmdline`).includes("agent-process"),
    )

const idleNode = async () => {
  const child = spawn(process.execPath, ["-e", "setInterval(() => {}, 1e9)"])
  await pause(rest_ms)
  const megabytes = residentOf(child.pid ?? 0)
  child.kill()
  return megabytes
}

const idleAgent = async (folder: string) => {
  const settings = { ALMANAC_SERVICES: '["share-protection"]' }
  const { pid, stop } = await startGateway(folder, settings)
  try {
    const end = performance.now() + boot_ms_max
    while (agentOf(pid) === undefined && performance.now() < end) await pause(look_ms)
    await pause(rest_ms)
    return residentOf(agentOf(pid) ?? 0)
  } finally {
    await stop()
  }
}

const figuresText = (figures: ReadonlyArray<number>) =>
  `${median(figures).toFixed(1)} MB (${figures.map((figure) => figure.toFixed(1)).join(" ")})`

export const memory: Suite = async ({ folder, rounds }) => {
  const agents: Array<number> = []
  const nodes: Array<number> = []
  for (let round = 0; round < rounds; round++) {
    agents.push(await idleAgent(join(folder, `round-${round}`)))
    nodes.push(await idleNode())
  }
  const ratio = (median(agents) / median(nodes)).toFixed(2)
  const rows = [
    `- agent: ${figuresText(agents)}`,
    `- Node: ${figuresText(nodes)}`,
    `- agent / Node: ${ratio}`,
  ].join("\n")
  const spent = `${rounds} rounds, in turns; resident memory ${rest_ms / 1000} s after the start.`
  return [await machine(folder, [], []), spent, rows].join("\n\n")
}
