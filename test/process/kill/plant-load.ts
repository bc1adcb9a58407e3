/** Many clients who have leaves predicted by one server, again and again, until enough are told. */
import { readFileSync } from "node:fs"
import { Agent, request } from "node:http"
import { setTimeout as pause } from "node:timers/promises"
import sharp from "sharp"
import { demo_classes, drawLeaf } from "#trainer"
import { newFolder, startServer } from "../../world/server/server.ts"

/** Of a leaf that was cut out. */
const side = 256
const places = 10
const boundary = "almanac-plant-load"
/** The fastest of those who were turned away come again after this. */
const retry_ms = 1000

/** What memory may grow by while the same is done again: of noise, and of an allocator's arenas. */
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

/** The status, and the answer's text; rejects where there is none. */
const ask = (url: string, agent: Agent, body: Buffer) =>
  new Promise<{ status: number; text: string }>((resolve, reject) => {
    const headers = {
      "content-type": `multipart/form-data; boundary=${boundary}`,
      "content-length": body.length,
    }
    const asked = request(`${url}/predict`, { method: "POST", agent, headers }, (answer) => {
      let text = ""
      answer.setEncoding("utf8").on("data", (part: string) => {
        text += part
      })
      answer.on("end", () => resolve({ status: answer.statusCode ?? 0, text }))
      answer.on("error", reject)
    })
    asked.on("error", reject)
    asked.end(body)
  })

export interface Loaded {
  /** Answers by their status. */
  readonly statuses: ReadonlyMap<number, number>
  /** Whether each leaf had one answer, however often it was asked for. */
  readonly is_same: boolean
  /** What the last third needed more memory than the one before. */
  readonly growth_bytes: number
}

/** So many clients at once, until so many predictions were told; 503 is asked again. */
export const plantLoad = async (clients: number, predictions: number): Promise<Loaded> => {
  const forms = await Promise.all(demo_classes.map((_, index) => formOf(index)))
  const server = await startServer(newFolder(), { ALMANAC_SERVICES: '["plant-disease"]' })
  const agent = new Agent({ keepAlive: true, maxSockets: clients })
  const statuses = new Map<number, number>()
  const answers = forms.map(() => new Set<string>())
  const memory: Array<number> = []
  let told = 0
  const client = async (first: number) => {
    for (let n = first; told < predictions; n++) {
      const index = n % forms.length
      const { status, text } = await ask(server.url, agent, forms[index] ?? Buffer.of())
      statuses.set(status, (statuses.get(status) ?? 0) + 1)
      if (status !== 200) {
        await pause(retry_ms)
        continue
      }
      answers[index]?.add(text)
      told++
      if (told % Math.ceil(predictions / places) === 0) memory.push(residentBytes(server.pid))
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
