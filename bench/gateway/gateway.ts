/**
 * Suite 2: small reads through the whole gateway compared with raw node:http and the same
 * responses.
 */
import { fork } from "node:child_process"
import { once } from "node:events"
import { setTimeout as pause } from "node:timers/promises"
import { fileURLToPath } from "node:url"
import { machine } from "../harness/machine.ts"
import { interleave, orSkip } from "../harness/series.ts"
import type { Suite } from "../harness/suite.ts"
import { table } from "../harness/table.ts"
import { asking } from "../share-protection/backup-almanac.ts"
import { type Gateway, startGateway } from "./almanac-gateway.ts"
import type { Reply } from "./http-reply.ts"
import { applyLoad, load_tool } from "./load.ts"

const connections = 32

/** Headers that Node writes itself, the same for each server. */
const own_headers = ["connection", "date", "keep-alive", "transfer-encoding"]

/** The raw server's response if there is no gateway to copy from. */
const stand_in: Reply = {
  headers: ["content-type", "application/json", "content-length", "11"],
  body: '{"ok":true}',
}

/** A response of the gateway, for the raw server to repeat. */
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

/** A resource to read, and the caller's token. */
interface Read {
  readonly of: string
  readonly url: string
  readonly token: string
}

/** Milliseconds between two polls of a job. */
const look_ms = 100

/** A job that has ended: the enrollment of a bucket on an endpoint without a server. */
const endedJob = async ({ url, token, tenant, tenant_project_id, trust_id }: Gateway) => {
  const ask = asking(url, tenant)
  const body = { project_id: tenant_project_id, payload: "unused" }
  const { href } = await asking(url, token)<{ href: string }>("admin/secrets", body)
  const { job } = await ask<{ job: { id: string } }>("targets", {
    name: "none",
    endpoint: "http://127.0.0.1:9",
    bucket: "none",
    trust_id,
    vault_secret_map: { access_key: href, secret_key: href },
  })
  for (;;) {
    const { state } = await ask<{ state: string }>(`jobs/${job.id}`)
    if (state === "error") return job.id
    await pause(look_ms)
  }
}

const readsOf = async (almanac: Gateway | undefined): Promise<ReadonlyArray<Read>> => {
  if (almanac === undefined) return [{ of: "A stand-in", url: "", token: "none" }]
  const { url, token, tenant } = almanac
  return [
    { of: "The version document, which never changes", url, token },
    { of: "A job by its id", url: `${url}jobs/${await endedJob(almanac)}`, token: tenant },
  ]
}

export const gateway: Suite = async ({ folder, rounds, seconds, onEnd }) => {
  const almanac = await orSkip("almanac", () => startGateway(folder))
  if (almanac) onEnd(almanac.stop)
  const effort = { in_flight: connections, seconds, runs_max: Number.MAX_SAFE_INTEGER }
  const columns = { rate: "requests/s", per_run: 1, ours: "almanac", latency: true }
  const all = []
  const sections: Array<string> = []
  for (const { of, url, token } of await readsOf(almanac)) {
    const reply = almanac ? await replyOf(url, token) : stand_in
    const raw = await startRaw(reply)
    onEnd(raw.stop)
    const seat = (name: string, url: string) => ({
      name,
      round: ({ seconds }: { readonly seconds: number }) =>
        applyLoad({ url, token, connections, seconds }, folder),
    })
    const seats = [...(almanac ? [seat("almanac", url)] : []), seat("raw node:http", raw.url)]
    const measured = await interleave(seats, effort, rounds, folder)
    all.push(measured)
    sections.push(`${of}, ${reply.body.length} bytes of body:`, table(measured, columns))
  }
  const spent =
    `${rounds} rounds of ${seconds} s each, interleaved, after one discarded; ${connections} ` +
    `connections of ${load_tool}; the same headers and body on both sides.`
  return [await machine(folder, all, []), spent, ...sections].join("\n\n")
}
