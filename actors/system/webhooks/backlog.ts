/**
 * The undelivered events of one webhook, and the schedule of their attempts.
 *
 * Events of one subject are delivered one after another, in log order; different subjects are
 * independent, so that a stuck event does not block others. It does no I/O: each call passes the
 * current time.
 */
import type { Open, WebhookCursor } from "#actors/system/webhooks/cursors.ts"
import type { Outcome } from "#actors/system/webhooks/sender.ts"

/** Maximum number of concurrent attempts per webhook, to protect receivers. */
export const parallel_max = 8
/** Maximum number of events that are read and not delivered: a cursor of 100 KB. */
export const open_max = 1000
/** The pause after the first failure, in milliseconds; it doubles with each, up to an hour. */
const pause_ms_min = 5_000
const pause_ms_max = 3_600_000
/** Failed attempts of one event while others succeeded: about five hours. */
export const blamed_max = 11
/** Attempts of an event after an abandoned one, or of one that blocks a full backlog. */
const stuck_attempts_min = 3
/** Attempts of a requested redelivery. */
const redelivery_tries_max = 3
/** The receiver counts as down after this many subjects failed since the last success. */
const failing_keys_max = 5
/** While it is down, one event at a time is tried; shortest and longest pause in milliseconds. */
const rest_ms_min = 5_000
const rest_ms_max = 60_000
/** The longest Retry-After that is honoured, in milliseconds. */
const retry_after_ms_max = 3_600_000

/** An event to deliver. */
export interface Item {
  readonly sequence: number
  /** Events with the same key are delivered one after another. */
  readonly key: string
  /** True for a requested redelivery of a dead letter. */
  readonly is_redelivery: boolean
  /** Failed attempts, and how many of them while the receiver accepted other events. */
  attempts: number
  blamed: number
  /** True if the previous event of its key was abandoned. */
  is_behind: boolean
  first_failed_ms: number | undefined
  last_failed_ms: number | undefined
  next_ms: number
  is_under_way: boolean
}

/** The decision after a failure: retry later, or abandon the event. */
export type Verdict = "again" | "give_up"

const doubled = (first: number, times: number, most: number) =>
  Math.min(first * 2 ** Math.min(times, 30), most)

/** Adds jitter: half of the pause, plus a random part of the other half. */
const jittered = (pause_ms: number, random: number) =>
  Math.round(pause_ms / 2 + (pause_ms / 2) * random)

export interface Backlog {
  readonly read: () => number
  readonly hasRoom: () => boolean
  /** Adds an event. */
  readonly take: (event: Pick<Item, "sequence" | "key"> & Partial<Item>) => void
  /** Marks every event up to here as added or not wanted. */
  readonly readTo: (sequence: number) => void
  /** Starts the attempts that are due; `next` is the next due time in epoch milliseconds. */
  readonly begin: (now_ms: number) => { readonly items: ReadonlyArray<Item>; readonly next: number }
  /** Removes an event that is delivered, or recorded as abandoned. */
  readonly settle: (item: Item) => void
  /** Records a success; a redelivery stays in progress until the log has recorded it. */
  readonly succeeded: (item: Item, now_ms: number) => void
  /** `random` is from 0 to 1. */
  readonly failed: (item: Item, outcome: Outcome, now_ms: number, random: number) => Verdict
  /** Retries later, for a reason other than the receiver. */
  readonly postpone: (item: Item, until_ms: number) => void
  /** Events to abandon when the backlog is full: those of the longest failing subject. */
  readonly surplus: () => ReadonlyArray<Item>
  readonly failingSince: () => number | null
  readonly cursor: () => WebhookCursor
}

/** Waiting events by key, in log order. */
const makeQueues = () => {
  const queues = new Map<string, Array<Item>>()
  let size = 0
  return {
    add: (item: Item) => {
      const queue = queues.get(item.key)
      if (queue === undefined) queues.set(item.key, [item])
      else {
        const at = queue.findLastIndex(({ sequence }) => sequence < item.sequence)
        queue.splice(at + 1, 0, item)
      }
      if (!item.is_redelivery) size++
    },
    remove: (item: Item) => {
      const left = queues.get(item.key)?.filter((one) => one !== item) ?? []
      if (left.length === 0) queues.delete(item.key)
      else queues.set(item.key, left)
      if (!item.is_redelivery) size--
    },
    heads: () => [...queues.values()].flatMap(([head]) => (head === undefined ? [] : [head])),
    of: (key: string): ReadonlyArray<Item> => queues.get(key) ?? [],
    all: () => [...queues.values()].flat(),
    size: () => size,
  }
}

const openOf = (item: Item): Open => {
  const { sequence, attempts, blamed, is_behind, first_failed_ms, last_failed_ms, next_ms } = item
  return {
    sequence,
    attempts,
    ...(blamed === 0 ? {} : { blamed }),
    ...(is_behind ? { is_behind } : {}),
    ...(first_failed_ms === undefined ? {} : { first_failed_ms }),
    ...(last_failed_ms === undefined ? {} : { last_failed_ms }),
    ...(next_ms === 0 ? {} : { next_ms }),
  }
}

const fresh = {
  is_redelivery: false,
  attempts: 0,
  blamed: 0,
  is_behind: false,
  next_ms: 0,
  first_failed_ms: undefined,
  last_failed_ms: undefined,
} as const

type Queues = ReturnType<typeof makeQueues>

/** The status of a receiver, derived from the outcomes of attempts. */
const makeReceiver = (from: WebhookCursor) => {
  let { failing_since_ms, last_success_ms, last_failure } = from
  /** Keys that failed since the last success. */
  const failing = new Set<string>()
  let pauses = 0
  let rest_until_ms = 0
  let hold_until_ms = 0
  const isDown = () => failing.size >= failing_keys_max
  return {
    isDown,
    holdUntil: () => hold_until_ms,
    restUntil: () => Math.max(hold_until_ms, rest_until_ms),
    tookSince: (ms: number) => (last_success_ms ?? 0) > ms,
    succeeded: (now_ms: number) => {
      failing.clear()
      pauses = 0
      failing_since_ms = null
      last_success_ms = now_ms
    },
    failed: (key: string, outcome: Outcome, now_ms: number, random: number) => {
      const { detail, retry_after_ms = 0 } = outcome
      failing_since_ms ??= now_ms
      last_failure = { at_ms: now_ms, detail }
      hold_until_ms = Math.max(hold_until_ms, now_ms + Math.min(retry_after_ms, retry_after_ms_max))
      failing.add(key)
      if (!isDown()) return
      rest_until_ms = now_ms + jittered(doubled(rest_ms_min, pauses++, rest_ms_max), random)
    },
    summary: () => ({ failing_since_ms, last_success_ms, last_failure }),
  }
}

type Receiver = ReturnType<typeof makeReceiver>

const inOrder = (one: Item, other: Item) => one.sequence - other.sequence

/** The items that may start, oldest first, and the time of the next one. */
const ready = (queues: Queues, receiver: Receiver, under_way: number, now_ms: number) => {
  const waiting = queues.heads().filter((item) => !item.is_under_way)
  if (receiver.isDown()) {
    // Probe with the least tried event, which is the least likely to be the cause.
    const [least] = waiting.toSorted((a, b) => a.attempts - b.attempts || inOrder(a, b))
    if (under_way > 0 || least === undefined) return { items: [], next: Infinity }
    const until = receiver.restUntil()
    return until > now_ms ? { items: [], next: until } : { items: [least], next: Infinity }
  }
  const dueOf = ({ next_ms }: Item) => Math.max(next_ms, receiver.holdUntil())
  const due = waiting.filter((item) => dueOf(item) <= now_ms).toSorted(inOrder)
  const later = waiting.map(dueOf).filter((at) => at > now_ms)
  return { items: due.slice(0, parallel_max - under_way), next: Math.min(...later, Infinity) }
}

/** True if the event, and not its receiver, is the likely cause of the failures. */
const isToBlame = (receiver: Receiver, { attempts, first_failed_ms = 0 }: Item) =>
  receiver.tookSince(first_failed_ms) || (attempts >= stuck_attempts_min && !receiver.isDown())

/** True if the event should be abandoned. If the receiver is down, no event is to blame. */
const isExhausted = (receiver: Receiver, item: Item) => {
  if (item.is_redelivery) return item.attempts >= redelivery_tries_max
  if (item.is_behind) return item.attempts >= stuck_attempts_min && isToBlame(receiver, item)
  return item.blamed >= blamed_max
}

/** Records a failure and the time of the next attempt. */
const mark = (receiver: Receiver, item: Item, now_ms: number, random: number) => {
  item.attempts++
  if (receiver.tookSince(item.last_failed_ms ?? now_ms)) item.blamed++
  item.first_failed_ms ??= now_ms
  item.last_failed_ms = now_ms
  const pause = doubled(pause_ms_min, item.attempts - 1, pause_ms_max)
  item.next_ms = now_ms + jittered(pause, random)
}

/** The events of the longest failing subject, if the backlog is full. */
const surplusOf = (queues: Queues, receiver: Receiver) => {
  if (queues.size() < open_max) return []
  const [stuck] = queues
    .heads()
    .filter((item) => item.attempts > 0 && !item.is_redelivery && !item.is_under_way)
    .filter((item) => isToBlame(receiver, item))
    .toSorted((a, b) => (a.first_failed_ms ?? 0) - (b.first_failed_ms ?? 0))
  return stuck === undefined ? [] : queues.of(stuck.key)
}

/** A backlog that continues from a cursor. The caller adds the cursor's open events. */
export const makeBacklog = (from: WebhookCursor): Backlog => {
  const queues = makeQueues()
  const receiver = makeReceiver(from)
  let { read } = from
  let under_way = 0

  const end = (item: Item) => {
    if (item.is_under_way) under_way--
    item.is_under_way = false
  }

  return {
    read: () => read,
    hasRoom: () => queues.size() < open_max,
    take: (event) => queues.add({ ...fresh, ...event, is_under_way: false }),
    readTo: (sequence) => {
      read = Math.max(read, sequence)
    },
    begin: (now_ms) => {
      const begun = ready(queues, receiver, under_way, now_ms)
      for (const item of begun.items) item.is_under_way = true
      under_way += begun.items.length
      return begun
    },
    settle: (item) => {
      end(item)
      queues.remove(item)
      const [next] = queues.of(item.key)
      if (next === undefined) return
      next.is_behind = true
      next.first_failed_ms = item.first_failed_ms
    },
    succeeded: (item, now_ms) => {
      // The receiver is up again: waiting events are due now.
      if (receiver.isDown()) for (const one of queues.all()) one.next_ms = 0
      receiver.succeeded(now_ms)
      if (item.is_redelivery) return
      end(item)
      queues.remove(item)
    },
    failed: (item, outcome, now_ms, random) => {
      mark(receiver, item, now_ms, random)
      receiver.failed(item.key, outcome, now_ms, random)
      // It stays in progress until the decision is recorded.
      if (isExhausted(receiver, item)) return "give_up"
      end(item)
      return "again"
    },
    postpone: (item, until_ms) => {
      item.next_ms = Math.max(item.next_ms, until_ms)
      end(item)
    },
    surplus: () => surplusOf(queues, receiver),
    failingSince: () => receiver.summary().failing_since_ms,
    cursor: () => ({
      ...from,
      read,
      ...receiver.summary(),
      open: queues
        .all()
        .filter(({ is_redelivery }) => !is_redelivery)
        .map(openOf)
        .toSorted((one, other) => one.sequence - other.sequence),
    }),
  }
}
