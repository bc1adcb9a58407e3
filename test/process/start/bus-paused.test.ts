/** The health that a process reports while the bus is offline, and after it returns. */
import assert from "node:assert/strict"
import { afterAll, it } from "vitest"
import { describeWithServer } from "../../world/programs/nats.ts"
import { putBlob } from "../../world/server/blob-client.ts"
import { connect } from "../../world/server/client.ts"
import { newDeployment } from "../../world/server/deployment.ts"
import { startNats } from "../../world/server/outside-nats.ts"
import {
  cleanUp,
  natsServersOn,
  newFolder,
  outputOf,
  startServer,
  until,
} from "../../world/server/server.ts"

/** A paused bus is disconnected after six seconds, and reported as offline after three more. */
const away_ms_max = 60_000
const minutes_ms = 180_000

afterAll(cleanUp)

const readyOf = async (url: string) => {
  const answer = await fetch(new URL("/readyz", url))
  return { status: answer.status, text: await answer.text() }
}

const healthOf = async (url: string, token: string) => {
  const operator = connect(url, token)
  try {
    const { status, body } = await operator.ask("GET", "/v1/admin/system/health")
    const { code, detail } = JSON.parse(body.toString()) as { code?: string; detail?: string }
    return { status, code, detail }
  } finally {
    operator.close()
  }
}

/** Waits until the process reports that the bus is offline. */
const untilAway = (url: string, token: string) =>
  until("unhealthy", away_ms_max, async () => {
    const health = await healthOf(url, token)
    return health.detail?.includes("connection to the bus") ? health : undefined
  })

const untilBack = (url: string, token: string) =>
  until("healthy again", away_ms_max, async () => {
    const [health, ready] = [await healthOf(url, token), await readyOf(url)]
    return health.status === 200 && !ready.text.includes("connection to the bus") && ready
  })

describeWithServer("a server whose bus is paused", () => {
  it(
    "is unhealthy and says so on each line, and takes blobs",
    async () => {
      const server = await startServer(newFolder())
      const { admin, blob } = server.credentials
      await untilBack(server.url, admin.token)
      const [pid = 0] = natsServersOn(server.data_dir)
      process.kill(pid, "SIGSTOP")
      const health = await untilAway(server.url, admin.token)
      assert.deepEqual([health.status, health.code], [503, "svc.backend_unavailable"])
      const { status, text } = await readyOf(server.url)
      assert.equal(status, 503, text)
      for (const name of ["share-protection", "operations"]) {
        assert.match(text, new RegExp(`^${name} has no connection to the bus$`, "m"))
      }
      assert.match(text, /^blob-storage ok; has no connection to the bus$/m)
      assert.match(text, /^capital-pressure ok$/m)
      const client = connect(server.url, blob.token)
      assert.equal((await putBlob(client, Buffer.from("without a bus"), "raw")).status, 200)
      client.close()
      process.kill(pid, "SIGCONT")
      assert.equal((await untilBack(server.url, admin.token)).status, 200)
      assert.deepEqual(await server.stop(), { code: 0, signal: null })
    },
    minutes_ms,
  )
})

describeWithServer("a process without blobs whose bus is paused", () => {
  it(
    "is asked no more until it is back, whether it has the paths or conducts",
    async () => {
      const nats = await startNats(newFolder())
      const deployment = newDeployment({ url: nats.url })
      try {
        const [works, front] = await Promise.all([
          deployment.start("w1", { roles: ["actors", "conductor"] }),
          deployment.start("g1", { roles: ["gateway"] }),
        ])
        const { admin } = deployment.tokens
        await untilBack(front.url, admin)
        process.kill(nats.pid, "SIGSTOP")
        const health = await untilAway(front.url, admin)
        assert.deepEqual([health.status, health.code], [503, "svc.backend_unavailable"])
        const ready = await readyOf(front.url)
        assert.equal(ready.status, 503, outputOf(front))
        assert.match(ready.text, /^share-protection has no connection to the bus$/m)
        const worker = await until("not ready", away_ms_max, async () => {
          const found = await readyOf(works.url)
          return found.text.includes("no connection") && found
        })
        const lines = ["actors", "conductor"].map(
          (name) => `${name} has no connection to the bus\n`,
        )
        assert.deepEqual(worker, { status: 503, text: lines.join("") })
        process.kill(nats.pid, "SIGCONT")
        assert.equal((await untilBack(front.url, admin)).status, 200)
      } finally {
        process.kill(nats.pid, "SIGCONT")
        await deployment.stop()
        await nats.stop()
      }
    },
    minutes_ms,
  )
})
