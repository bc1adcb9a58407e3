/** Blobs on a separate disk that survive the loss of the data folder and its log: decision 0190. */
import assert from "node:assert/strict"
import { existsSync, readFileSync, rmSync } from "node:fs"
import { join } from "node:path"
import { afterAll, it } from "vitest"
import { readVolumeWitness, volume_witness_file } from "#journal"
import { describeWithServer } from "../world/programs/nats.ts"
import { hashed, putBlob } from "../world/server/blob-client.ts"
import { connect, responseText } from "../world/server/client.ts"
import {
  cleanUp,
  newFolder,
  runVerb,
  type Server,
  startServer,
  until,
} from "../world/server/server.ts"

const test_ms_max = 120_000
const soon_ms = 30_000

afterAll(cleanUp)

const stored = async ({ url, credentials }: Server, text: string) => {
  const client = connect(url, credentials.blob.token)
  const bytes = Buffer.from(text)
  const answer = await putBlob(client, bytes, "raw")
  assert.equal(answer.status, 200, responseText(answer))
  client.close()
  return hashed(bytes).id
}

const readyOf = async ({ url }: Server) => {
  const answer = await fetch(`${url}/readyz`)
  return { status: answer.status, text: await answer.text() }
}

describeWithServer("blobs that outlive their log", () => {
  it(
    "keep a new log read-only until the loss is accepted",
    async () => {
      const data_dir = join(newFolder(), "data")
      const blob_dir = join(newFolder(), "blobs")
      const environment = { ALMANAC_BLOB__DIR: blob_dir, ALMANAC_SERVICES: "blob-storage" }
      const verb = (...args: ReadonlyArray<string>) => runVerb(data_dir, args, environment)

      const first = await startServer(data_dir, environment)
      const id = await stored(first, "before")
      assert.equal((await readyOf(first)).status, 200)
      const path = join(blob_dir, volume_witness_file)
      await until("a witness", soon_ms, async () => existsSync(path))
      await first.stop()
      const [known] = readVolumeWitness(blob_dir)
      assert.ok(known !== undefined && known.position > 0)

      rmSync(data_dir, { recursive: true })
      const second = await startServer(data_dir, environment)
      const ready = await until("a log that is read-only", soon_ms, async () => {
        const now = await readyOf(second)
        return now.status === 503 && now
      })
      assert.match(ready.text, new RegExp(`the blob store has position ${known.position}`))
      assert.match(ready.text, /almanac log accept-loss/)
      const read = await fetch(`${second.url}/v1/blobs/${id}`, {
        headers: {
          authorization: `Bearer ${second.credentials.blob.token}`,
          accept: "application/octet-stream",
        },
      })
      assert.deepEqual([read.status, await read.text()], [200, "before"])
      await second.stop()
      assert.equal(readVolumeWitness(blob_dir)[0]?.position, known.position)

      const { code, stdout } = await verb("audit", "verify")
      assert.equal(code, 1)
      assert.match(stdout, /the blob store/)
      const accepted = await verb("log", "accept-loss", "--reason", "the other disk failed")
      assert.equal(accepted.code, 0, accepted.stderr)
      const third = await startServer(data_dir, environment)
      await until("a log that takes commits", soon_ms, async () => {
        return (await readyOf(third)).status === 200
      })
      await stored(third, "after")
      await until("a witness of the new log", soon_ms, async () => existsSync(path))
      await third.stop()
      assert.notEqual(JSON.parse(readFileSync(path, "utf8")).hash, known.hash)
      assert.equal((await verb("audit", "verify")).code, 0)
    },
    test_ms_max,
  )
})
