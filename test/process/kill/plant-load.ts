/**
 * Many clients that repeatedly request leaf predictions from one server, until the server has
 * returned enough.
 */
import { readFileSync } from "node:fs"
import { Agent, request } from "node:http"
import { setTimeout as pause } from "node:timers/promises"
import sharp from "sharp"
import { demo_classes, drawLeaf } from "#trainer"
import { newFolder, startServer } from "../../world/server/server.ts"

/** Side length of a cropped leaf picture. */
const side = 256
const places = 10
const boundary = "almanac-plant-load"
/** Shortest retry delay of a rejected client. */
const retry_ms = 1000

/** Permitted memory growth while the load repeats: noise, and an allocator's arenas. */
export const load_growth_bytes_max = 96 * 2 ** 20

const formOf = async (index: number) => {
  const raw = { width: side, height: side, channels: 3 } as const
  const leaf = await sharp(drawLeaf(index, 9, side), { raw })
    .jpeg()
    .toBuffer()
  const disposition = 'Content-Disposition: form-data; name="file"; filename="leaf.jpg"'
  const head = `--${boundary}\r\n${disposition}\r\nContent-Type: image/jpeg\r\n\r\n`
  return Buffer.concat([Buffer.from(head), leaf, Buffer.from(`\r\n--${boundary}--\r\n`)])
}

const residentBytes = (pid: number) =>
  Number(/^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1]) * 1024

/** The status and body; rejects if there is no response. */
const ask = (url: string, agent: Agent, body: Buffer) =>
  new Promise<{ status: number; text: string }>((resolve, reject) => {
    const headers = {
      "content-type": `multipart/form-data; boundary=${boundary}`,
      "content-length": body.length,
    }
    const pending = request(`${url}/predict`, { method: "POST", agent, headers }, (answer) => {
      let text = ""
      answer.setEncoding("utf8").on("data", (part: string) => {
        text += part
      })
      answer.on("end", () => resolve({ status: answer.statusCode ?? 0, text }))
      answer.on("error", reject)
    })
    pending.on("error", reject)
    pending.end(body)
  })

export interface Loaded {
  /** Responses by status. */
  readonly statuses: ReadonlyMap<number, number>
  /** Whether all responses for each leaf were equal. */
  readonly is_same: boolean
  /** Additional memory of the last third compared with the one before. */
  readonly growth_bytes: number
}

/**
 * Runs this many concurrent clients until this many predictions are returned; retries after a 503.
 */
export const plantLoad = async (clients: number, predictions: number): Promise<Loaded> => {
  const forms = await Promise.all(demo_classes.map((_, index) => formOf(index)))
  const server = await startServer(newFolder(), { ALMANAC_SERVICES: '["plant-disease"]' })
  const agent = new Agent({ keepAlive: true, maxSockets: clients })
  const statuses = new Map<number, number>()
  const answers = forms.map(() => new Set<string>())
  const memory: Array<number> = []
  let received = 0
  const client = async (first: number) => {
    for (let n = first; received < predictions; n++) {
      const index = n % forms.length
      const { status, text } = await ask(server.url, agent, forms[index] ?? Buffer.of())
      statuses.set(status, (statuses.get(status) ?? 0) + 1)
      if (status !== 200) {
        await pause(retry_ms)
        continue
      }
      answers[index]?.add(text)
      received++
      if (received % Math.ceil(predictions / places) === 0) memory.push(residentBytes(server.pid))
    }
  }
  await Promise.all(Array.from({ length: clients }, (_, n) => client(n)))
  agent.destroy()
  await server.stop()
  const third = Math.floor(memory.length / 3)
  const growth_bytes =
    Math.max(...memory.slice(-third)) - Math.max(...memory.slice(-2 * third, -third))
  return { statuses, growth_bytes, is_same: answers.every((texts) => texts.size <= 1) }
}
