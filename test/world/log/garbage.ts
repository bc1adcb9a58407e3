/** Messages that no release writes, as published by someone with the bus's credentials. */
import { readFileSync } from "node:fs"
import { join } from "node:path"
import { connect, headers, type MsgHdrs } from "@nats-io/transport-node"

export interface Garbage {
  readonly kind: string
  readonly stream: string
  readonly data: string | Uint8Array
  readonly headers?: Readonly<Record<string, string>>
}

/** A commit as a release writes it. */
const envelope = {
  v: 1,
  actor: "somebody",
  at: "2026-11-20T12:00:00.000Z",
  events: [{ type: "Happened" }],
  snapshot: { machine: 1, value: "open", context: {} },
  commands: ["by-mistake"],
  prev: "0".repeat(64),
}

const written = (change: object = {}) => JSON.stringify({ ...envelope, ...change })

/** Invalid commit envelopes, one of each kind. `used` are streams in use. */
export const garbage = (used: ReadonlyArray<string>): ReadonlyArray<Garbage> => {
  const target = "share-protection.target.x"
  const kinds: ReadonlyArray<readonly [string, string, string | Uint8Array]> = [
    ["not JSON", target, "oops"],
    ["another version", target, written({ v: 2 })],
    ["another shape", target, '{"v":1,"hello":true}'],
    ["no snapshot", target, written({ snapshot: undefined })],
    ["no events", target, written({ events: undefined })],
    ["no time", target, written({ at: "soon" })],
    ["bytes", target, Uint8Array.of(0xff, 0xfe, 0, 1, 2)],
    ["nothing", "share-protection.policy.x", ""],
    ["600 KB", "share-protection.backup.x", written({ mood: "x".repeat(600_000) })],
    ["an id with odd characters", "share-protection.target.a$b=ü", written()],
    ["a subject of two tokens", "share-protection.target", written()],
    ["a subject of many tokens", "blob-storage.cluster.almanac.x.y", written()],
    ["an unknown service", "weather.station.x", "{}"],
  ]
  return [
    ...kinds.map(([kind, stream, data]) => ({ kind, stream, data })),
    {
      kind: "headers from outside",
      stream: "carrier-search.search.x",
      data: "<html>",
      headers: { "Almanac-Position": "abc", "Content-Type": "text/html" },
    },
    ...used.map((stream) => ({ kind: `in use: ${stream}`, stream, data: "oops" })),
    ...poison(used),
  ]
}

/** Valid envelopes of commits that no aggregate can have written, one of each kind. */
const poison = (used: ReadonlyArray<string>): ReadonlyArray<Garbage> => {
  const open = (context: object) => ({ machine: 1, value: "open", context })
  const target = "share-protection.target.poison"
  const kinds: ReadonlyArray<readonly [string, string, object]> = [
    ["a type of event that no release has", target, {}],
    ["an event of another shape", target, { events: [{ type: "TargetCreated" }] }],
    ["a snapshot of no state", target, { snapshot: { machine: 1, value: "nowhere", context: {} } }],
    ["a machine that never was", target, { snapshot: { machine: 0, value: [7], context: null } }],
    [
      "a blob's event without a blob",
      "blob-storage.volume.poison",
      { events: [{ type: "BlobStored" }] },
    ],
    ["an acknowledgement of nothing", "system.quarantine.log", { snapshot: open({ through: 9 }) }],
    ["a checkpoint of nothing", "system.checkpoint.poison", { snapshot: open({}) }],
  ]
  return [
    ...kinds.map(([kind, stream, change]) => ({ kind, stream, data: written(change) })),
    ...used.map((stream) => ({ kind: `poison: ${stream}`, stream, data: written() })),
  ]
}

interface InstanceFile {
  readonly nats: { readonly url: string; readonly user: string; readonly password: string }
}

/** A connection with the credentials that a running server writes for the operator. */
const coreConnection = (data_dir: string) => {
  const file = readFileSync(join(data_dir, "run", "instance.json"), "utf8")
  const { nats } = JSON.parse(file) as InstanceFile
  return connect({ servers: nats.url, user: nats.user, pass: nats.password })
}

const headersOf = (some: Readonly<Record<string, string>>): MsgHdrs => {
  const all = headers()
  for (const [name, value] of Object.entries(some)) all.set(name, value)
  return all
}

/** Publishes each message into the log, and returns their positions. */
export const publishInto = async (data_dir: string, all: ReadonlyArray<Garbage>) => {
  const connection = await coreConnection(data_dir)
  const positions: Array<number> = []
  for (const { stream, data, headers: some } of all) {
    const options = { timeout: 10_000, ...(some && { headers: headersOf(some) }) }
    const answer = await connection.request(`commit.${stream}`, data, options)
    const { seq, error } = answer.json<{ seq?: number; error?: { description: string } }>()
    if (seq === undefined) throw new Error(`${stream}: ${error?.description}`)
    positions.push(seq)
  }
  await connection.close()
  return positions
}
