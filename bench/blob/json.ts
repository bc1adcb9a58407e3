/**
 * `JSON.parse alone` of the blob suite, both this process and its launcher: parses the body of a
 * put as JSON and decodes its base64, repeatedly; nothing is received or stored.
 */
import { fork } from "node:child_process"
import { once } from "node:events"
import { fileURLToPath } from "node:url"
import { quantile, summary } from "../harness/round.ts"
import { type BlobRound, randomBody } from "./request.ts"

interface Order {
  readonly blob_bytes: number
  readonly seconds: number
}

const parse = ({ blob_bytes, seconds }: Order): BlobRound => {
  const { body } = randomBody({ blob_bytes, form: "json", head: "", tail: "" })
  const latencies: Array<number> = []
  const began = performance.now()
  const end = began + seconds * 1000
  for (let now = began; now < end; ) {
    const { data } = JSON.parse(body.toString())
    if (Buffer.from(data, "base64").length !== blob_bytes) throw new Error("not what was sent")
    const done = performance.now()
    latencies.push(done - now)
    now = done
  }
  const took = (performance.now() - began) / 1000
  const p999_ms = quantile(latencies, 0.999)
  return { ...summary(latencies, took), p999_ms, client_busy: 0 }
}

/** Starts the process. A round parses one body after another. */
export const startJsonParse = (blob_bytes: number) => {
  const path = fileURLToPath(import.meta.url)
  const child = fork(path, { stdio: ["ignore", "ignore", "inherit", "ipc"] })
  const round = async (seconds: number): Promise<BlobRound> => {
    const answered = once(child, "message")
    child.send({ blob_bytes, seconds } satisfies Order)
    const [answer] = await answered
    return answer
  }
  const stop = async () => {
    child.disconnect()
    await once(child, "exit")
  }
  return { round, stop }
}

if (process.send !== undefined && process.argv[1] === fileURLToPath(import.meta.url)) {
  process.on("disconnect", () => process.exit(0))
  process.on("message", (order: Order) => process.send?.(parse(order)))
}
