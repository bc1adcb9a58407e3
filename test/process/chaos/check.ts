/** Invariants of several processes on one log after recovery. */
import assert from "node:assert/strict"
import { responseText } from "../../world/server/client.ts"
import { type AuditEvent, auditEvents, publishedEvents } from "../../world/server/history.ts"
import { caughtUp, dumpReadModels, readModelsEqualRebuilt } from "../../world/server/read-models.ts"
import { runVerb, until } from "../../world/server/server.ts"
import type { Record, Seat } from "./load.ts"

/** Maximum time until the processes return the same state. */
const same_ms_max = 60_000

/** Counts of the checked items, for the log line. */
export interface Checked {
  readonly acknowledged: number
  readonly unanswered: number
  readonly reads: number
  readonly events: number
  readonly published: number
  /** Number of elections by lease name. */
  readonly elections: ReadonlyMap<string, number>
}

export type Checkable = Seat & {
  readonly data_dir: string
  readonly environment: Readonly<{ [name: string]: string }>
}

/** Each acknowledged operation is in the log once, and no other operation is. */
const checkLog = (events: ReadonlyArray<AuditEvent>, { acknowledged }: Record) => {
  const positions = new Map<string, Array<number>>()
  for (const { correlation_id, type, aggregate, position } of events) {
    if (aggregate !== "webhook") continue
    const key = `${correlation_id} ${type}`
    positions.set(key, [...(positions.get(key) ?? []), position])
  }
  for (const { name, event } of acknowledged) {
    const key = `${name} ${event}`
    const found = positions.get(key) ?? []
    assert.equal(found.length, 1, `${key} is in the log at ${found.join(" and ") || "no position"}`)
    positions.delete(key)
  }
  assert.deepEqual([...positions.keys()], [], "the log has what no client was acknowledged")
}

const snakeCase = (type: string) =>
  type.replaceAll(/(?!^)[A-Z]/g, (letter) => `_${letter}`).toLowerCase()

/** Subscribers receive each of them once, in log order, through every process. */
const checkPublished = async ({ client, name }: Seat, events: ReadonlyArray<AuditEvent>) => {
  const wanted = events
    .filter(({ aggregate }) => aggregate === "webhook")
    .map(({ position, index, type, id }) => `${position}.${index} ${snakeCase(type)} ${id}`)
  const published = await publishedEvents(client, wanted.length)
  assert.deepEqual(
    published.map(({ event: { id, type, subject } }) => `${id} ${type} ${subject}`),
    wanted,
    `${name}'s events differ from the log`,
  )
  assert.deepEqual(
    published.map(({ sequence }) => sequence),
    published.map((_, n) => n + 1),
    "published events are not numbered one by one",
  )
  return published.length
}

/** Every process returns the last acknowledged state of each webhook. */
const checkShown = async ({ client, name }: Seat, { present, deleted }: Record) => {
  for (const [id, description] of present) {
    const answer = await client.ask("GET", `/v1/webhooks/${id}`)
    assert.equal(answer.status, 200, `${id} at ${name}: ${responseText(answer)}`)
    const found = JSON.parse(answer.body.toString())
    assert.equal(found.description, description, `${id} at ${name}: an acknowledged change is lost`)
  }
  for (const id of deleted) {
    const { status } = await client.ask("GET", `/v1/webhooks/${id}`)
    assert.equal(status, 404, `${id} at ${name}: an acknowledged delete is undone`)
  }
}

/** The files of all processes have the same rows once each has read the whole log. */
const checkSame = (processes: ReadonlyArray<Checkable>) => {
  const [first, ...others] = processes
  assert(first, "there is a process")
  return until("all processes to show the same", same_ms_max, () => {
    const one = JSON.stringify(dumpReadModels(first.data_dir))
    return others.every(({ data_dir }) => JSON.stringify(dumpReadModels(data_dir)) === one)
  })
}

const countElections = (events: ReadonlyArray<AuditEvent>) => {
  const elections = new Map<string, number>()
  for (const { type, id } of events) {
    if (type === "LeaderElected") elections.set(id, (elections.get(id) ?? 0) + 1)
  }
  return elections
}

/** Checks everything; fails on the first violation. */
export const chaosCheck = async (
  processes: ReadonlyArray<Checkable>,
  record: Record,
): Promise<Checked> => {
  const [first] = processes
  assert(first, "there is a process")
  for (const one of processes) {
    await caughtUp(one.client)
    await checkShown(one, record)
  }
  const verified = await runVerb(first.data_dir, ["audit", "verify"], first.environment)
  assert.equal(verified.code, 0, `audit verify: ${verified.stdout}\n${verified.stderr}`)
  const events = await auditEvents(first.client, [])
  checkLog(events, record)
  let published = 0
  for (const one of processes) published = await checkPublished(one, events)
  for (const { client, data_dir } of processes) await readModelsEqualRebuilt(client, data_dir)
  await checkSame(processes)
  const { acknowledged, unanswered, reads } = record
  return {
    acknowledged: acknowledged.length,
    unanswered,
    reads,
    events: events.length,
    published,
    elections: countElections(events),
  }
}
