/**
 * A server is killed while 256 clients put and delete blobs over HTTP. Afterwards, the result of
 * every acknowledged request is present, and every other request took effect completely or not at
 * all.
 */
import assert from "node:assert/strict"
import { randomInt } from "node:crypto"
import { Agent, request } from "node:http"
import { setTimeout as pause } from "node:timers/promises"
import { afterAll, it } from "vitest"
import { idOf, sizeOf } from "../../../packages/volume/test/kill-folder.ts"
import { noise } from "../../contract/blob-storage/engine-bytes.ts"
import { describeWithServer } from "../../world/programs/nats.ts"
import { seeded } from "../../world/seeded.ts"
import { cleanUp, newFolder, type Server, startServer, until } from "../../world/server/server.ts"

const rounds = 3
const writers = 256
/** Minimum number of responses per round; more arrive before the kill. */
const answered_min = 2000
const moment_ms_max = 200
const load_ms_max = 60_000
const seeds_per_round = 10_000_000
/** One in this many seeds has its blob deleted again. */
const deleted_every = 7
const readers = 32
const deadline_ms = 30_000

const environment = { ALMANAC_SERVICES: '["blob-storage"]', ALMANAC_COMPUTE__KIND: "none" }

/** The known state of a seed's blob: only acknowledged states are certain. */
type State = "putting" | "stored" | "deleting" | "deleted"

afterAll(cleanUp)

/** Sends requests over keep-alive connections. Rejects if there is no response. */
const clientOf = ({ url, credentials }: Server) => {
  const agent = new Agent({ keepAlive: true, maxSockets: writers })
  const headers = {
    authorization: `Bearer ${credentials.blob.token}`,
    "content-type": "application/octet-stream",
    accept: "application/octet-stream",
  }
  const ask = (method: string, path: string, body?: Uint8Array) =>
    new Promise<{ readonly status: number; readonly bytes: Buffer }>((resolve, reject) => {
      const options = { method, agent, headers, timeout: deadline_ms }
      const requests = request(`${url}${path}`, options, (answer) => {
        const parts: Array<Buffer> = []
        answer.on("data", (part: Buffer) => parts.push(part))
        answer.on("error", reject)
        answer.on("end", () =>
          answer.complete
            ? resolve({ status: answer.statusCode ?? 0, bytes: Buffer.concat(parts) })
            : reject(new Error("the answer was cut off")),
        )
      })
      requests.on("timeout", () => requests.destroy(new Error("no answer in time")))
      requests.on("error", reject)
      requests.end(body)
    })
  return { ask, close: () => agent.destroy() }
}

/** Writes until the server stops; counts its responses. */
const load = (server: Server, states: Map<number, State>, first: number) => {
  const { ask, close } = clientOf(server)
  const counted = { answered: 0, wrong: "" }
  const step = async (seed: number, was: State, is: State, get: ReturnType<typeof ask>) => {
    states.set(seed, was)
    const { status, bytes } = await get
    if (status !== 200) counted.wrong ||= `${status} to seed ${seed}: ${bytes.subarray(0, 300)}`
    else states.set(seed, is)
    counted.answered += 1
  }
  const write = async (writer: number) => {
    for (let seed = first + writer; ; seed += writers) {
      const body = noise(seed, sizeOf(seed))
      await step(seed, "putting", "stored", ask("POST", "/v1/blobs/stream", body))
      if (seed % deleted_every !== 0) continue
      await step(seed, "deleting", "deleted", ask("DELETE", `/v1/blobs/${idOf(seed)}`))
    }
  }
  // A writer ends at the first request without a response.
  const all = Array.from({ length: writers }, (_, writer) => write(writer).catch(() => undefined))
  return { counted, ended: Promise.all(all).then(close) }
}

const check = async (server: Server, states: ReadonlyMap<number, State>) => {
  const { ask, close } = clientOf(server)
  const seeds = [...states]
  const look = async () => {
    for (let next = seeds.pop(); next !== undefined; next = seeds.pop()) {
      const [seed, state] = next
      const { status, bytes } = await ask("GET", `/v1/blobs/${idOf(seed)}`)
      assert(status === 200 || status === 404, `seed ${seed} is answered ${status}`)
      if (state === "stored") assert.equal(status, 200, `seed ${seed} is lost`)
      if (state === "deleted") assert.equal(status, 404, `seed ${seed} is back`)
      if (status === 404) continue
      assert(bytes.equals(noise(seed, sizeOf(seed))), `seed ${seed} has other bytes`)
    }
  }
  await Promise.all(Array.from({ length: readers }, look))
  close()
}

describeWithServer("a server that is killed while 256 clients write", () => {
  it("has all blobs that it answered for, and no half one", async () => {
    const seed = randomInt(2 ** 31)
    const random = seeded(seed)
    const data_dir = newFolder()
    const states = new Map<number, State>()
    let server = await startServer(data_dir, environment)
    for (let round = 0; round < rounds; round++) {
      const { counted, ended } = load(server, states, round * seeds_per_round)
      await until("a load", load_ms_max, () => {
        assert.equal(counted.wrong, "")
        return counted.answered >= answered_min
      })
      await pause(random.between(0, moment_ms_max))
      await server.killAll()
      await ended
      assert.equal(counted.wrong, "")
      server = await startServer(data_dir, environment)
      await check(server, states)
      const doubted = [...states.values()].filter((state) => state.endsWith("ing")).length
      const ready = `ready again in ${Math.round(server.ready_ms)} ms`
      const kept = `${counted.answered} answers kept, ${doubted} in doubt`
      console.log(`volume: round ${round + 1} of seed ${seed}: ${kept}, ${ready}`)
    }
    await server.stop()
  }, 240_000)
})
