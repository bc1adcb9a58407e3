/** `almanac events follow`: published events as they happen. Source: DECISIONS. */
import type { IncomingMessage } from "node:http"
import { setTimeout as pause } from "node:timers/promises"
import { failure, isFailure } from "#client/failure.ts"
import { fromJson, type Json, memberAt, textAt, toJson } from "#client/json.ts"
import type { Noun } from "#client/operation.ts"
import { addressOf } from "#client/request.ts"
import type { Session } from "#client/session.ts"
import { printable, shown } from "#client/shown.ts"

/** Longest silence: the server sends a comment every 15 s. */
const silence_ms_max = 45_000

/** Longest event of a stream, in characters: it is at most a commit, of 512 KB. */
const event_chars_max = 2 ** 21

/** Between two connections, in ms: the first wait, and the longest while the server is away. */
const again_ms = { first: 250, max: 10_000 }

/** Connections that fail before any was good, after which it is given up: the address is wrong. */
const failures_max = 20

/** How long a server may be away that has answered, in ms: a night's outage is waited through. */
const away_ms_max = 24 * 3_600_000

/** Its verb is in verbs/events.ts. */
export const events: Noun = {
  name: "events",
  what: "Published events",
  operations: [],
  covered: [{ method: "GET", path: "/v1/events", query: ["service", "type", "subject", "since"] }],
}

export interface Following {
  readonly filters: ReadonlyArray<readonly [string, string]>
  /** After the event of this number; 0 begins with the first there ever was. */
  readonly after: string | undefined
  /** Ends after so many events; 0 goes on until it is interrupted. */
  readonly count: number
}

interface Told {
  readonly id: string
  readonly data: string
}

/** The events of a stream as they come; comments keep it alive and tell nothing. */
export async function* eventsIn(
  parts: AsyncIterable<Uint8Array>,
  heard: () => void = () => undefined,
): AsyncGenerator<Told> {
  const decoder = new TextDecoder()
  let rest = ""
  let id = ""
  let data: Array<string> = []
  let data_chars = 0
  for await (const part of parts) {
    heard()
    rest += decoder.decode(part, { stream: true })
    const lines = rest.split(/\r\n|\n|\r(?!$)/)
    rest = lines.pop() ?? ""
    for (const line of lines) {
      if (line === "") {
        if (data.length > 0) yield { id, data: data.join("\n") }
        data = []
        data_chars = 0
        continue
      }
      const [, name = "", value = ""] = /^([^:]*):? ?(.*)$/s.exec(line) ?? []
      if (name === "id") id = value
      if (name === "data") {
        data.push(value)
        data_chars += value.length + 1
      }
    }
    if (rest.length + data_chars > event_chars_max) {
      throw failure("failed", "An event of the stream is too long")
    }
  }
}

/** A line of what happened; ids whole, so that they can be copied. */
const lineOf = (event: Json) => {
  const time = shown("time", textAt(event, "time"))
  const source = (textAt(event, "source") ?? "").replace("/almanac/", "")
  const data = printable(toJson(memberAt(event, "data") ?? null))
  const text = [time, textAt(event, "type") ?? "", textAt(event, "subject") ?? "", source, data]
  return text.map((one, i) => (i < text.length - 1 ? printable(one) : one)).join("  ")
}

/** When the stream began, by the server's clock. ClientFailed where the answer is no stream. */
const beginningOf = (answer: IncomingMessage) => {
  const { "content-type": type = "nothing", date } = answer.headers
  if (!type.startsWith("text/event-stream")) {
    answer.destroy()
    const what = `The answer is no stream of events, but ${printable(type)}`
    throw failure("failed", what, "check that the address is Almanac's")
  }
  const ms = Date.parse(date ?? "")
  return Number.isNaN(ms) ? undefined : new Date(ms).toISOString()
}

/** Whether it is no outage: what stands before a server that is away answers 500 and above. */
const isFinal = (cause: unknown, is_answered: boolean) =>
  isFailure(cause) && cause.ending !== "unreachable" && (is_answered || cause.ending !== "failed")

/** How long the server has been away, which is said once each time. */
const absence = ({ screen }: Session) => {
  let from_ms: number | undefined
  return {
    /** Whether it was away for longer than anybody waits. */
    isTooLong: (last: string | undefined) => {
      if (from_ms === undefined) {
        const next = last === undefined ? "" : `; the last event was ${last}`
        screen.err(`The server is away, and is tried again${next}.\n`)
      }
      from_ms ??= performance.now()
      return performance.now() - from_ms > away_ms_max
    },
    end: () => {
      if (from_ms !== undefined) screen.err("The server is there again.\n")
      from_ms = undefined
    },
  }
}

/** Prints events until it is interrupted or has `count`; connects again where it breaks. */
export const follow = async (
  session: Session,
  { filters, after, count }: Following,
  pace = again_ms,
) => {
  const { http, screen, output, signal } = session
  let last = after
  // Where nothing was told yet, one that connects again goes on from when it began.
  let since: string | undefined
  let told = 0
  let failures = 0
  const away = absence(session)
  let is_known = false
  const heard = () => {
    is_known = true
    failures = 0
    away.end()
  }
  const placed = () => `Go on from here: almanac events follow --after ${last}\n`
  const failed = (cause: unknown) => {
    // What is refused is the place itself: the server was restored to an earlier one.
    const is_place = told > 0 && !(isFailure(cause) && cause.ending === "refused")
    if (is_place) screen.err(placed())
    return cause
  }
  const isOver = () => (is_known && failures > 1 ? away.isTooLong(last) : failures >= failures_max)
  for (;;) {
    let is_answered = false
    try {
      const asked =
        last === undefined && since !== undefined
          ? [...filters, ["since", since] as const]
          : filters
      const answer: IncomingMessage = await http.open({
        ...{ method: "GET", path: addressOf("/v1/events", asked), need: "admin", signal },
        silence_ms: silence_ms_max,
        headers: {
          accept: "text/event-stream",
          ...(last !== undefined && { "last-event-id": last }),
        },
      })
      is_answered = true
      const began = beginningOf(answer)
      since ??= began
      for await (const { id, data } of eventsIn(answer, heard)) {
        last = id
        const event = fromJson(data)
        screen.out(`${output.json ? toJson(event) : lineOf(event)}\n`)
        told++
        if (told === count) return answer.destroy()
        // Who reads slowly is not told ahead of time.
        await screen.taken(signal)
      }
    } catch (cause) {
      if (signal.aborted) break
      if (isFinal(cause, is_answered || !is_known) || isOver()) throw failed(cause)
    }
    if (signal.aborted) break
    if (isOver()) throw failed(failure("unreachable", "The stream ends at once each time"))
    // Beyond this power the wait is the longest anyway.
    const ms = Math.min(pace.max, pace.first * 2 ** Math.min(failures++, failures_max))
    await pause(ms, undefined, { signal }).catch(() => undefined)
    if (signal.aborted) break
  }
  if (last !== undefined) screen.err(placed())
}
