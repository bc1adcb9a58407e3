/**
 * Clients that use one server concurrently: they put, put again, read and delete blobs, and make
 * cluster nodes join, change address, leave and send heartbeats. A ledger records every operation,
 * with or without a response. No two clients use the same blob or node.
 */
import { setTimeout as pause } from "node:timers/promises"
import { noise } from "../../contract/blob-storage/engine-bytes.ts"
import { type Seeded, seeded } from "../../world/seeded.ts"
import { get_forms, getBlob, hashed, put_forms, putBlob } from "../../world/server/blob-client.ts"
import {
  type Answer,
  type Client,
  connect,
  NoAnswer,
  responseText,
} from "../../world/server/client.ts"
import type { Ledger, State } from "../../world/server/ledger.ts"
import type { Server } from "../../world/server/server.ts"

/** Number of clients of each kind. */
const blob_clients = 6
const node_clients = 2
/** Nodes per client; the cluster has room for 40. */
const nodes_per_client = 4

/** Document 1 §7: the first pause before a retry after a 503. */
const retry_ms = 100

/**
 * Blob sizes in bytes: most are small, and some span many messages. All are large enough that no
 * two are equal by chance.
 */
const size_min = 8
const small_max = 20_000
const middle_max = 200_000
const large_max = 2_000_000

/** The inputs from which a blob's bytes are generated. */
export interface Content {
  readonly seed: number
  readonly size: number
}

export const bytesOf = ({ seed, size }: Content) => noise(seed, size)

/** Everything known about one data folder from all its rounds. */
export interface Known {
  readonly ledger: Ledger
  /** By hex identifier: every blob that was ever put or attempted. */
  readonly contents: Map<string, Content>
  /** Source of names and contents, so that they are unique within a folder. */
  next: number
}

export const here: State = "here"

interface Work {
  readonly known: Known
  readonly random: Seeded
  readonly blobs: Client
  readonly admin: Client
  readonly is_over: () => boolean
}

/** The response, or undefined if the server was stopped meanwhile. */
const answered = async ({ is_over }: Work, asking: Promise<Answer>) => {
  try {
    return await asking
  } catch (cause) {
    if (cause instanceof NoAnswer && is_over()) return undefined
    throw cause
  }
}

const nameOf = (known: Known, what: string) => `${what}-${known.next++}`

const sizeOf = ({ next, between }: Seeded) => {
  const chance = next()
  if (chance < 0.75) return between(size_min, small_max)
  return chance < 0.97 ? between(small_max, middle_max) : between(middle_max, large_max)
}

const put = async (work: Work, content: Content) => {
  const { known, random, blobs } = work
  const bytes = bytesOf(content)
  const { id, checksum } = hashed(bytes)
  known.contents.set(id, content)
  const name = nameOf(known, "put")
  const before = known.ledger.stateOf(id)
  const asking = putBlob(blobs, bytes, random.pick(put_forms), { "x-request-id": name })
  const answer = await answered(work, asking)
  if (answer !== undefined && answer.status !== 200) throw new Error(`put: ${responseText(answer)}`)
  if (answer !== undefined) {
    const { id: named, meta } = JSON.parse(answer.body.toString())
    const is_right = Buffer.from(named.id, "base64").toString("hex") === id
    if (!is_right || meta.checksum !== checksum) throw new Error(`${id}: ${responseText(answer)}`)
  }
  const is_acknowledged = answer !== undefined
  known.ledger.note({ name, subject: id, before, after: here, is_acknowledged })
  return id
}

const remove = async (work: Work, id: string) => {
  const { known, blobs } = work
  const name = nameOf(known, "delete")
  const before = known.ledger.stateOf(id)
  const asking = blobs.ask("DELETE", `/v1/blobs/${id}`, { headers: { "x-request-id": name } })
  const answer = await answered(work, asking)
  if (answer !== undefined && answer.status !== 200)
    throw new Error(`delete: ${responseText(answer)}`)
  const is_acknowledged = answer !== undefined
  known.ledger.note({ name, subject: id, before, after: undefined, is_acknowledged })
}

const readBack = async ({ blobs, random, is_over }: Work, id: string, content: Content) => {
  try {
    const bytes = await getBlob(blobs, id, random.pick(get_forms))
    if (!bytes.equals(bytesOf(content))) throw new Error(`${id} has other bytes than were put`)
  } catch (cause) {
    if (!(cause instanceof NoAnswer && is_over())) throw cause
  }
}

const blobClient = async (work: Work) => {
  const { known, random, is_over } = work
  const own: Array<string> = []
  while (!is_over()) {
    const chance = random.next()
    const id = own.length === 0 ? undefined : own[random.between(0, own.length - 1)]
    const content = id === undefined ? undefined : known.contents.get(id)
    if (id === undefined || content === undefined || chance < 0.55) {
      own.push(await put(work, { seed: known.next++, size: sizeOf(random) }))
    } else if (chance < 0.7) await remove(work, id)
    else if (chance < 0.8) await put(work, content)
    else if (known.ledger.stateOf(id) === here) await readBack(work, id, content)
  }
}

interface NodeCommand {
  readonly path: string
  readonly body: Readonly<Record<string, unknown>>
  readonly after: State
}

/** A node as the cluster state lists it. */
export const nodeState = (state: string, address: string): State => `${state} ${address}`

const capacity_bytes = 1_000_000_000

/** A valid command for a node in this state; the state's last word is the node's address. */
const commandOf = (random: Seeded, node_id: string, state: State): NodeCommand => {
  const joined = (address: string) => ({
    path: "/v1/cluster/join",
    body: { node_id, address, capacity_bytes },
    after: nodeState("active", address),
  })
  const left = { path: "/v1/cluster/leave", body: { node_id }, after: undefined }
  const elsewhere = `10.0.0.${random.between(1, 200)}:9797`
  if (state === undefined) return joined(elsewhere)
  const [now = "", address = ""] = state.split(" ")
  if (now === "leaving") return left
  const beat = { node_id, used_bytes: 1, blob_count: 1, ring_version: 0 }
  const chance = random.next()
  if (chance < 0.3) return joined(elsewhere)
  if (chance < 0.4) return joined(address)
  if (chance < 0.6) return { path: "/v1/cluster/heartbeat", body: beat, after: state }
  if (chance < 0.8) return left
  const graceful = { node_id, graceful: true }
  return { path: "/v1/cluster/leave", body: graceful, after: nodeState("leaving", address) }
}

const command = async (work: Work, node_id: string) => {
  const { known, random, admin } = work
  const before = known.ledger.stateOf(node_id)
  const { path, body, after } = commandOf(random, node_id, before)
  const name = nameOf(known, "node")
  const headers = {
    "content-type": "application/json",
    "x-request-id": name,
    "idempotency-key": name,
  }
  const request = { headers, body: JSON.stringify(body) }
  const answer = await answered(work, admin.ask("POST", path, request))
  // Without the log even the server does not know the outcome: the client retries with the same
  // key.
  const is_unknown = answer === undefined || answer.status === 503
  if (!is_unknown && answer.status !== 200) throw new Error(`${path}: ${responseText(answer)}`)
  const again = async (client: Client) => {
    const repeated = await client.ask("POST", path, request)
    if (repeated.status !== 200)
      throw new Error(`${name} again: ${path}: ${responseText(repeated)}`)
  }
  known.ledger.note({ name, subject: node_id, before, after, is_acknowledged: !is_unknown, again })
}

const nodeClient = async (work: Work, client: number) => {
  const { known, random, is_over } = work
  while (!is_over()) {
    const node_id = `node-${client}-${random.between(1, nodes_per_client)}`
    const doubt = known.ledger.doubts.get(node_id)
    if (doubt === undefined) await command(work, node_id)
    else await repeat(work, node_id)
  }
}

/** After a 503, a client sends its command again, as document 1 specifies. */
const repeat = async (work: Work, node_id: string) => {
  const { known, admin } = work
  const doubt = known.ledger.doubts.get(node_id)
  try {
    await doubt?.again?.(admin)
    known.ledger.resolve(node_id, doubt?.after)
  } catch (cause) {
    const is_away = cause instanceof Error && / 503 /.test(cause.message)
    const is_ended = cause instanceof NoAnswer && work.is_over()
    if (!is_away && !is_ended) throw cause
    await pause(retry_ms)
  }
}

/** Starts every client; `stop` ends them, and fails on the first error. */
export const startLoad = (server: Server, known: Known, seed: number) => {
  const { url, credentials } = server
  const blobs = connect(url, credentials.blob.token)
  const admin = connect(url, credentials.blob.token)
  let is_over = false
  let failure: unknown
  const work = (n: number): Work => ({
    known,
    random: seeded(seed * 1_000 + n),
    blobs,
    admin,
    is_over: () => is_over || failure !== undefined,
  })
  const clients = [
    ...Array.from({ length: blob_clients }, (_, n) => blobClient(work(n))),
    ...Array.from({ length: node_clients }, (_, n) => nodeClient(work(blob_clients + n), n)),
  ].map((client) =>
    client.catch((cause: unknown) => {
      failure ??= cause
    }),
  )
  return {
    /** From here on, clients ignore missing responses. */
    over: () => {
      is_over = true
    },
    check: () => {
      if (failure !== undefined) throw failure
    },
    stop: async () => {
      is_over = true
      await Promise.all(clients)
      blobs.close()
      admin.close()
      if (failure !== undefined) throw failure
    },
  }
}
