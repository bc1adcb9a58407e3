/**
 * Clients of several processes that share a log. Each client works on its own webhooks, through a
 * randomly chosen process. It sends an unanswered request again, with the same key, through another
 * process.
 */
import assert from "node:assert/strict"
import { setTimeout as pause } from "node:timers/promises"
import type { Seeded } from "../../world/seeded.ts"
import { type Answer, type Client, NoAnswer, responseText } from "../../world/server/client.ts"

/** Pause before an unanswered request or a 503 is retried, in milliseconds. */
const again_ms = 50
/** Maximum total time of one operation, under any fault. */
const operation_ms_max = 240_000
/** Maximum number of webhooks per client at the same time. */
const own_max = 4
const path = "/v1/webhooks"

/** One of the processes, as its clients know it. */
export interface Seat {
  readonly name: string
  client: Client
}

/** An acknowledged operation and its time, in milliseconds of this process. */
export interface Acknowledged {
  /** Sent as `X-Request-Id`, so that its events include it. */
  readonly name: string
  readonly event: "WebhookCreated" | "WebhookChanged" | "WebhookDeleted"
  readonly seat: string
  readonly at: number
}

/** A webhook in the state of its last acknowledged operation. */
interface Hook {
  readonly id: string
  description: string
}

export interface Record {
  readonly acknowledged: Array<Acknowledged>
  /** Descriptions by id, without deleted webhooks. */
  readonly present: Map<string, string>
  readonly deleted: Set<string>
  /** Requests without a response, or with a 503. */
  unanswered: number
  /** Reads from one process of a write that another process acknowledged. */
  reads: number
}

export const emptyRecord = (): Record => ({
  acknowledged: [],
  present: new Map(),
  deleted: new Set(),
  unanswered: 0,
  reads: 0,
})

interface Work {
  readonly record: Record
  readonly random: Seeded
  readonly seats: readonly [Seat, ...ReadonlyArray<Seat>]
  readonly is_over: () => boolean
}

interface Operation {
  readonly name: string
  readonly event: Acknowledged["event"]
  readonly method: string
  readonly path: string
  readonly body?: object
}

const done: Readonly<{ [Event in Acknowledged["event"]]: number }> = {
  WebhookCreated: 201,
  WebhookChanged: 200,
  WebhookDeleted: 204,
}

/** The response, or undefined if none arrived or the process could not know the outcome. */
const answered = async (work: Work, asking: Promise<Answer>) => {
  try {
    const answer = await asking
    if (answer.status !== 503) return answer
  } catch (cause) {
    if (!(cause instanceof NoAnswer)) throw cause
  }
  work.record.unanswered++
  return undefined
}

/**
 * Sends the request until it is acknowledged; a webhook deleted by an earlier attempt returns 404.
 */
const insist = async (work: Work, operation: Operation) => {
  const { name, event, method, path, body } = operation
  const headers = { "x-request-id": name, "idempotency-key": name }
  const init =
    body === undefined
      ? { headers }
      : { headers: { ...headers, "content-type": "application/json" }, body: JSON.stringify(body) }
  const since = performance.now()
  for (let tries = 0; ; tries++) {
    const seat = work.random.pick(work.seats)
    const answer = await answered(work, seat.client.ask(method, path, init))
    const is_gone = tries > 0 && event === "WebhookDeleted" && answer?.status === 404
    if (answer?.status === done[event] || is_gone) {
      work.record.acknowledged.push({ name, event, seat: seat.name, at: performance.now() })
      return answer
    }
    assert(answer === undefined, `${name} at ${seat.name}: ${answer && responseText(answer)}`)
    assert(performance.now() - since < operation_ms_max, `${name} is never answered`)
    await pause(again_ms)
  }
}

/** Another process returns the acknowledged state to a read at its position. */
const readBack = async (work: Work, hook: Hook, position: string) => {
  const seat = work.random.pick(work.seats)
  const headers = { "x-almanac-position": position }
  const answer = await answered(work, seat.client.ask("GET", `${path}/${hook.id}`, { headers }))
  if (answer === undefined) return
  assert.equal(answer.status, 200, `${hook.id} at ${seat.name}: ${responseText(answer)}`)
  const { description } = JSON.parse(answer.body.toString())
  assert.equal(description, hook.description, `${hook.id} at ${seat.name}, position ${position}`)
  work.record.reads++
}

const positionOf = (answer: Answer | undefined) => {
  const position = answer?.headers["x-almanac-position"]
  return typeof position === "string" ? position : undefined
}

const create = async (work: Work, name: string): Promise<Hook> => {
  // It never receives deliveries; other tests cover them.
  const body = { url: "https://example.org/hook", description: name, enabled: false }
  const answer = await insist(work, { name, event: "WebhookCreated", method: "POST", path, body })
  const { id } = JSON.parse(answer?.body.toString() ?? "")
  work.record.present.set(id, name)
  return { id, description: name }
}

/** One client: creates, changes and deletes webhooks until it is stopped. */
export const chaosClient = async (work: Work, client: number) => {
  const { record, random, is_over } = work
  const own: Array<Hook> = []
  for (let n = 1; !is_over(); n++) {
    const name = `chaos-${client}-${n}`
    const chance = random.next()
    const at = random.between(0, own.length - 1)
    const hook = own[at]
    if (hook === undefined || (own.length < own_max && chance < 0.2)) {
      own.push(await create(work, name))
      continue
    }
    const one = { name, path: `${path}/${hook.id}` }
    if (chance > 0.93) {
      await insist(work, { ...one, event: "WebhookDeleted", method: "DELETE" })
      own.splice(at, 1)
      record.present.delete(hook.id)
      record.deleted.add(hook.id)
      continue
    }
    const body = { description: name }
    const answer = await insist(work, { ...one, event: "WebhookChanged", method: "PATCH", body })
    hook.description = name
    record.present.set(hook.id, name)
    const position = positionOf(answer)
    if (position !== undefined && chance < 0.5) await readBack(work, hook, position)
  }
}
