/**
 * The service over HTTP in the plant suite: a separate process, which receives requests like a
 * page's.
 */
import { mkdirSync } from "node:fs"
import { Agent, request } from "node:http"
import { join } from "node:path"
import { startGateway } from "../gateway/almanac-gateway.ts"
import { drive } from "../harness/round.ts"
import type { PlantSeat } from "./seats.ts"

const boundary = "almanac-plant-bench"

/** One image as the only part of the form. */
const formOf = (image: Uint8Array) => {
  const disposition = 'Content-Disposition: form-data; name="file"; filename="leaf.jpg"'
  const head = `--${boundary}\r\n${disposition}\r\nContent-Type: image/jpeg\r\n\r\n`
  return Buffer.concat([Buffer.from(head), image, Buffer.from(`\r\n--${boundary}--\r\n`)])
}

const sendRequest = (url: URL, agent: Agent, body: Buffer) =>
  new Promise<void>((resolve, reject) => {
    const headers = {
      "content-type": `multipart/form-data; boundary=${boundary}`,
      "content-length": body.length,
    }
    const sent = request(url, { method: "POST", agent, headers }, (answer) => {
      answer.on("error", reject).on("end", resolve).resume()
      if (answer.statusCode !== 200) reject(new Error(`answered ${answer.statusCode}`))
    })
    sent.on("error", reject).end(body)
  })

/** The whole server with only plant disease prediction, and this many keep-alive connections. */
export const httpSeat = async (
  name: string,
  folder: string,
  model_path: string,
  image: Uint8Array,
  in_flight: number,
): Promise<PlantSeat> => {
  const own = join(folder, `http-${in_flight}`)
  mkdirSync(own)
  const server = await startGateway(join(own, "data"), {
    ALMANAC_SERVICES: '["plant-disease"]',
    ALMANAC_PLANT__MODEL: model_path,
  })
  const agent = new Agent({ keepAlive: true, maxSockets: in_flight })
  const [url, body] = [new URL("/predict", server.url), formOf(image)]
  return {
    name,
    round: (effort) => drive(() => sendRequest(url, agent, body), 0, { ...effort, in_flight }),
    stop: async () => {
      agent.destroy()
      await server.stop()
    },
  }
}
