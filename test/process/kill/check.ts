/**
 * Invariants of a server that was restarted after a kill at any moment: nothing acknowledged is
 * lost, nothing is duplicated or partial, and all its views agree.
 */
import assert from "node:assert/strict"
import { get_forms, getBlob, hashed, listBlobs } from "../../world/server/blob-client.ts"
import { type Client, connect, responseText } from "../../world/server/client.ts"
import { type AuditEvent, auditEvents, publishedEvents } from "../../world/server/history.ts"
import { readModelsEqualRebuilt } from "../../world/server/read-models.ts"
import { runVerb, type Server, until } from "../../world/server/server.ts"
import { bytesOf, here, type Known, nodeState } from "./load.ts"

/**
 * Time for the journal to drain into the log: its pause is 250 ms, the rest is for a busy machine.
 */
const drained_ms_max = 30_000
/** Blobs that are read back concurrently. */
const readers = 8

/** Counts of the checked items, for the log line. */
export interface Checked {
  readonly blobs: number
  readonly deleted: number
  readonly nodes: number
  readonly events: number
  readonly published: number
}

/** Runs `work` on each of the items, several concurrently. */
export const each = async <A>(
  items: ReadonlyArray<A>,
  concurrency: number,
  work: (item: A, index: number) => Promise<void>,
) => {
  const waiting = items.entries()
  const worker = async () => {
    for (const [index, item] of waiting) await work(item, index)
  }
  await Promise.all(Array.from({ length: concurrency }, worker))
}

/** Every listed blob was put and not deleted, and has its bytes; every other blob is gone. */
const checkBlobs = async (blobs: Client, { ledger, contents }: Known) => {
  const listed = await listBlobs(blobs)
  const present = new Set(listed)
  assert.equal(present.size, listed.length, "an identifier is listed twice")
  for (const id of contents.keys()) {
    if (ledger.isInDoubt(id)) ledger.resolve(id, present.has(id) ? here : undefined)
    const state = ledger.stateOf(id)
    assert(state !== here || present.has(id), `the acknowledged put of ${id} is lost`)
    assert(state === here || !present.has(id), `the acknowledged delete of ${id} is undone`)
  }
  await each(listed, readers, async (id, n) => {
    const content = contents.get(id)
    assert(content, `${id} is listed, but was never put`)
    const form = get_forms[n % get_forms.length] ?? "raw"
    const bytes = await getBlob(blobs, id, form)
    assert(bytes.equals(bytesOf(content)), `${id} has other bytes than were put`)
    const { exists, meta } = await blobs.json<Stat>("GET", `/v1/blobs/${id}/stat`)
    assert(exists && meta.checksum === hashed(bytes).checksum, `${id} has another checksum`)
  })
  const gone = [...contents.keys()].filter((id) => !present.has(id))
  await each(gone, readers, async (id) => {
    const answer = await blobs.ask("GET", `/v1/blobs/${id}`)
    // The load's nodes do not really exist, so they cannot be queried for the blob.
    const is_gone = answer.status === 404 || answer.status === 503
    assert(is_gone, `${id} is not listed: ${responseText(answer)}`)
  })
  return { present, deleted: gone.length }
}

interface Stat {
  readonly exists: boolean
  readonly meta: { readonly checksum: string }
}

interface ClusterState {
  readonly nodes: ReadonlyArray<{
    readonly node_id: string
    readonly state: string
    readonly address: string
  }>
}

/** Each node has the state of its last command; commands in doubt are sent once more. */
const checkNodes = async (admin: Client, { ledger, contents }: Known) => {
  for (const [subject, { after, again }] of ledger.doubts) {
    if (contents.has(subject)) continue
    await again?.(admin)
    ledger.resolve(subject, after)
  }
  const { nodes } = await admin.json<ClusterState>("GET", "/v1/cluster/state")
  const found = new Map(nodes.map((node) => [node.node_id, nodeState(node.state, node.address)]))
  let count = 0
  for (const [subject, state] of ledger.states) {
    if (contents.has(subject)) continue
    count++
    assert.equal(found.get(subject), state, `node ${subject} is not what it was made`)
    found.delete(subject)
  }
  assert.equal(
    found.size,
    1,
    "the cluster has the server's own node in addition to the clients' nodes, and no other",
  )
  return count
}

/** A volume's other events are about the volume as a whole. */
const isBlobEvent = ({ aggregate, type }: AuditEvent) =>
  aggregate === "volume" && type.startsWith("Blob")

/** The blobs that exist according to the log. */
const presentBy = (events: ReadonlyArray<AuditEvent>) => {
  const ids = new Set<string>()
  for (const { type, subject } of events.filter(isBlobEvent)) {
    assert(type === "BlobStored" || type === "BlobDeleted", `${subject}: ${type}`)
    assert.equal(ids.has(subject), type === "BlobDeleted", `${subject}: ${type} twice in a row`)
    if (type === "BlobStored") ids.add(subject)
    else ids.delete(subject)
  }
  return ids
}

/** Each operation that changed something is in the log once, and no other operation is. */
const checkLog = (events: ReadonlyArray<AuditEvent>, { ledger, contents }: Known) => {
  const times = new Map<string, Set<string>>()
  for (const event of events) {
    const { correlation_id, position, index } = event
    if (correlation_id === undefined) continue
    // Blob events share commits, but a cluster command is exactly one commit.
    const place = isBlobEvent(event) ? `${position}.${index}` : `${position}`
    times.set(correlation_id, (times.get(correlation_id) ?? new Set()).add(place))
  }
  for (const operation of ledger.operations) {
    const { name, subject } = operation
    const count = times.get(name)?.size ?? 0
    assert.equal(count, ledger.timesDone(operation), `${name} on ${subject}: times in the log`)
    times.delete(name)
  }
  assert.deepEqual([...times.keys()], [], "the log has commands that no client sent")
  let cursor = 0
  for (const { subject, data, type } of events.filter(isBlobEvent)) {
    assert.equal(data.after, cursor, `the fact after ${cursor} is missing`)
    cursor = Number(data.cursor)
    const content = contents.get(subject)
    const same = content && hashed(bytesOf(content)).checksum === data.checksum
    assert(same && data.size === content.size, `${type} of ${subject} has other bytes`)
  }
}

/** The log's events, once the journal has written all its facts. */
const drained = async (admin: Client, present: ReadonlySet<string>, { ledger }: Known) => {
  const wanted = ledger.operations.filter((operation) => ledger.timesDone(operation) > 0)
  let events: ReadonlyArray<AuditEvent> = []
  let missing = ""
  const is_drained = async () => {
    events = await auditEvents(admin, events)
    const types = new Set(events.map(({ correlation_id }) => correlation_id))
    missing = wanted.find(({ name }) => !types.has(name))?.name ?? ""
    const by_log = presentBy(events)
    return missing === "" && by_log.size === present.size && by_log.isSubsetOf(present)
  }
  await until("the journal to be in the log", drained_ms_max, is_drained).catch((cause) => {
    throw new Error(`${cause.message}; first missing: ${missing || "none of the clients'"}`)
  })
  // Read again from the beginning, without reusing earlier results.
  return await auditEvents(admin, [])
}

const snakeCase = (type: string) =>
  type.replaceAll(/(?!^)[A-Z]/g, (letter) => `_${letter}`).toLowerCase()

/** Subscribers receive each event of the services once, in log order. */
const checkPublished = async (admin: Client, events: ReadonlyArray<AuditEvent>) => {
  const wanted = events
    .filter(({ service }) => service === "blob-storage")
    .map((event) => {
      const { position, index, type, subject, id } = event
      const shown_as = isBlobEvent(event) ? subject : id
      return `${position}.${index} ${snakeCase(type)} ${shown_as}`
    })
  const published = await publishedEvents(admin, wanted.length)
  const delivered = published.map(({ event: { id, type, subject } }) => `${id} ${type} ${subject}`)
  assert.deepEqual(delivered, wanted, "the published events differ from the log")
  const sequences = published.map(({ sequence }) => sequence)
  assert.deepEqual(
    sequences,
    published.map((_, n) => n + 1),
    "published events are not numbered one by one",
  )
  return published.length
}

/** Checks everything; fails on the first violation. */
export const checkAll = async (server: Server, known: Known): Promise<Checked> => {
  const { url, credentials, data_dir } = server
  const blobs = connect(url, credentials.blob.token)
  const admin = connect(url, credentials.admin.token)
  try {
    const { present, deleted } = await checkBlobs(blobs, known)
    const nodes = await checkNodes(blobs, known)
    const events = await drained(admin, present, known)
    checkLog(events, known)
    const published = await checkPublished(admin, events)
    const verified = await runVerb(data_dir, ["audit", "verify"])
    assert.equal(verified.code, 0, `audit verify: ${verified.stdout}\n${verified.stderr}`)
    await readModelsEqualRebuilt(admin, data_dir)
    return { blobs: present.size, deleted, nodes, events: events.length, published }
  } finally {
    blobs.close()
    admin.close()
  }
}
