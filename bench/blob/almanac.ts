/** Almanac in the blob suite: the whole server as `npm start` runs it, with only blob storage. */
import { startGateway } from "../gateway/almanac-gateway.ts"
import { unique_mark } from "./request.ts"
import { type BlobServer, disk_room_bytes, jsonPut, plainGet, plainPut } from "./server.ts"

const id_of_answer = /"id":\{"id":"([^"]+)"\}/

/** A blob's ID is base64 in a response and hex in a path. */
export const keyOf = (answer: string) => {
  const id = id_of_answer.exec(answer)?.[1]
  if (id === undefined) throw new Error(`a put answered ${answer}`)
  return Buffer.from(id, "base64").toString("hex")
}

/** Syncs of the log since startup, according to the metrics: one for each batch. */
const syncs_of_metrics = /^almanac_volume_batches_total (\d+)/m

const syncsOf = async (url: string, token: string) => {
  const headers = { authorization: `Bearer ${token}` }
  const text = await (await fetch(new URL("/metrics", url), { headers })).text()
  const count = syncs_of_metrics.exec(text)?.[1]
  return count === undefined ? undefined : Number(count)
}

export const startAlmanac = async (folder: string): Promise<BlobServer> => {
  const settings = { ALMANAC_SERVICES: '["blob-storage"]' }
  const { url, token, blob, stop } = await startGateway(folder, settings)
  const headers = { authorization: `Bearer ${blob}` }
  const plain = { ...headers, "content-type": "application/octet-stream" }
  const hasSyncs = (await syncsOf(url, token)) !== undefined
  return {
    protocol: "http",
    port: Number(new URL(url).port),
    room_bytes: disk_room_bytes,
    put: plainPut("POST", "/v1/blobs/stream", plain),
    putJson: jsonPut("PUT", "/v1/blobs", headers),
    get: plainGet(`/v1/blobs/${unique_mark}`, { ...headers, accept: "application/octet-stream" }),
    keysOf: (answers) => answers.map(keyOf),
    ...(hasSyncs ? { syncs: async () => (await syncsOf(url, token)) ?? 0 } : {}),
    stop,
  }
}
