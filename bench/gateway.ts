/** Suite 2: a small read through the whole gateway against raw node:http with the same answer. */
import { fork } from "node:child_process"
import { once } from "node:events"
import { fileURLToPath } from "node:url"
import { startGateway } from "./almanac-gateway.ts"
import type { Reply } from "./http-reply.ts"
import { applyLoad, load_tool } from "./load.ts"
import { machine } from "./machine.ts"
import { interleave, orSkip } from "./series.ts"
import type { Suite } from "./suite.ts"
import { table } from "./table.ts"

const connections = 32

/** Written by node itself, for each server alike. */
const own_headers = ["connection", "date", "keep-alive", "transfer-encoding"]

/** Answered by the raw server where there is no gateway to copy. */
const stand_in: Reply = {
  headers: ["content-type", "application/json", "content-length", "11"],
  body: '{"ok":true}',
}

/** One answer of the gateway, to be repeated by the raw server. */
const replyOf = async (url: string, token: string): Promise<Reply> => {
  const headers = {
    authorization: `Bearer ${token}`,
    accept: "application/json",
    "accept-encoding": "identity",
  }
  const response = await fetch(url, { headers })
  const body = await response.text()
  if (response.status !== 200) throw new Error(`the gateway answered ${response.status}`)
  const kept = [...response.headers].filter(([name]) => !own_headers.includes(name))
  return { headers: kept.flat(), body }
}

const startRaw = async (reply: Reply) => {
  const child = fork(fileURLToPath(new URL("http-reply.ts", import.meta.url)))
  const listening = once(child, "message")
  child.send(reply)
  const [{ url }] = await listening
  const stop = async () => {
    child.disconnect()
    await once(child, "exit")
  }
  return { url: String(url), stop }
}

export const gateway: Suite = async ({ folder, rounds, seconds, onEnd }) => {
  const almanac = await orSkip("almanac", () => startGateway(folder))
  if (almanac) onEnd(almanac.stop)
  const reply = almanac ? await replyOf(almanac.url, almanac.token) : stand_in
  const raw = await startRaw(reply)
  onEnd(raw.stop)
  const token = almanac?.token ?? "none"
  const seat = (name: string, url: string) => ({
    name,
    round: ({ seconds }: { readonly seconds: number }) =>
      applyLoad({ url, token, connections, seconds }, folder),
  })
  const seats = [...(almanac ? [seat("almanac", almanac.url)] : []), seat("raw node:http", raw.url)]
  const effort = { in_flight: connections, seconds, runs_max: Number.MAX_SAFE_INTEGER }
  const measured = await interleave(seats, effort, rounds, folder)
  const columns = { rate: "requests/s", per_run: 1, ours: "almanac", latency: true }
  const spent =
    `${rounds} rounds of ${seconds} s each, interleaved, after one discarded; ${connections} ` +
    `connections of ${load_tool}; ${reply.body.length} bytes of body, the same headers.`
  return [await machine(folder, [measured], []), spent, table(measured, columns)].join("\n\n")
}
