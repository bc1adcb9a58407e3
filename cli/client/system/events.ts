/** `almanac events follow`: published events as they happen. Source: DECISIONS. */
import type { IncomingMessage } from "node:http"
import { setTimeout as pause } from "node:timers/promises"
import { failure, isFailure } from "#cli/client/failure.ts"
import { fromJson, type Json, memberAt, textAt, toJson } from "#cli/client/json.ts"
import type { Noun } from "#cli/client/operation.ts"
import { addressOf } from "#cli/client/request.ts"
import type { Session } from "#cli/client/session.ts"
import { printable, shown } from "#cli/client/shown.ts"

/** Longest silence: the server sends a comment every 15 s. */
const silence_ms_max = 45_000

/** Longest event of a stream, in characters: it is at most a commit, of 512 KB. */
const event_chars_max = 2 ** 21

/** Between two connections, in ms: the first wait, and the longest where nobody asks for more. */
const again_ms = { first: 250, max: 10_000 }

/** Longest wait that a server may ask for, in ms. */
const asked_ms_max = 3_600_000

/** Reasons of one absence that are said: a server may have others without end. */
const reasons_max = 20

/** Beyond this power of two the wait is the longest anyway. */
const doublings_max = 16

/** Its verb is in cli/events.ts. */
export const events: Noun = {
  name: "events",
  operations: [
    {
      verb: "ticket",
      method: "POST",
      path: "/v1/events/tickets",
      what: "A ticket for a browser's EventSource, valid for 60 s and while a stream is open",
    },
  ],
  covered: [{ method: "GET", path: "/v1/events", query: ["service", "type", "subject", "since"] }],
}

export interface Following {
  readonly filters: ReadonlyArray<readonly [string, string]>
  /** After the event of this id, `<epoch>-<sequence>`; 0 begins with the first there ever was. */
  readonly after: string | undefined
  /** Ends after so many events; 0 goes on until it is interrupted. */
  readonly count: number
  /** Gives up where the server is away for so many seconds; undefined: never. */
  readonly retry_for_s?: number | undefined
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

/** Whether another try cannot help: what a server refuses, and what is no stream of events. */
const isFinal = (cause: unknown) => isFailure(cause) && cause.again_ms === undefined

const ended = failure("unreachable", "The stream of events ended", undefined, 0)

/** How long the server has been away, and what is said of it: each reason once. */
const absence = ({ screen }: Session, pace: typeof again_ms) => {
  let from_ms: number | undefined
  let tries = 0
  let is_known = false
  const said = new Set<string>()
  return {
    /** How long to wait, in ms, and how long it was waited in all by then. */
    next: (why: unknown, last: string | undefined) => {
      from_ms ??= performance.now()
      const asked_ms = isFailure(why) ? (why.again_ms ?? 0) : 0
      // One that answered goes on at once as a rule: nothing is said of that.
      const is_news = tries > 0 || !is_known || asked_ms > 0
      const backoff_ms = pace.first * 2 ** Math.min(doublings_max, tries++)
      const ms = Math.max(Math.min(pace.max, backoff_ms), Math.min(asked_ms, asked_ms_max))
      const { message } = isFailure(why) ? why : ended
      if (is_news && !said.has(message) && said.size < reasons_max) {
        // What to do about it concerns whoever has just begun.
        const reason = is_known ? message.split("\n", 1) : message
        const delay = asked_ms > 0 ? ` in ${Math.ceil(ms / 1000)} s,` : ""
        const place = last === undefined ? "" : `; the last event was ${last}`
        screen.err(`${reason}\n  tried again${delay} until it is there${place}.\n`)
        said.add(message)
      }
      return { ms, away_ms: performance.now() - from_ms + ms }
    },
    end: () => {
      if (said.size > 0) screen.err("The server is there again.\n")
      said.clear()
      from_ms = undefined
      tries = 0
      is_known = true
    },
  }
}

/**
 * Prints events until it is interrupted or has `count`. Where the stream breaks, or the server is
 * away or asks to wait, it is asked for again, as long as nobody bounds that.
 */
export const follow = async (
  session: Session,
  { filters, after, count, retry_for_s = Number.POSITIVE_INFINITY }: Following,
  pace = again_ms,
) => {
  const { http, screen, output, signal } = session
  let last = after
  // Where nothing was told yet, one that connects again goes on from when it began.
  let since: string | undefined
  let told = 0
  const away = absence(session, pace)
  const placed = () => `Go on from here: almanac events follow --after ${last}\n`
  const failed = (cause: unknown) => {
    // What is refused is the place itself: the server was restored to an earlier one.
    const is_refused = isFinal(cause) && isFailure(cause) && cause.ending === "refused"
    if (told > 0 && !is_refused) screen.err(placed())
    return cause
  }
  for (;;) {
    let why: unknown = ended
    try {
      const asked =
        last === undefined && since !== undefined
          ? [...filters, ["since", since] as const]
          : filters
      const answer: IncomingMessage = await http.open({
        method: "GET",
        path: addressOf("/v1/events", asked),
        need: "admin",
        signal,
        // How it is asked again is decided here.
        silence_ms: silence_ms_max,
        is_repeatable: false,
        headers: {
          accept: "text/event-stream",
          ...(last !== undefined && { "last-event-id": last }),
        },
      })
      const began = beginningOf(answer)
      since ??= began
      for await (const { id, data } of eventsIn(answer, away.end)) {
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
      if (isFinal(cause)) throw failed(cause)
      why = cause
    }
    if (signal.aborted) break
    const { ms, away_ms } = away.next(why, last)
    if (away_ms > retry_for_s * 1000) throw failed(isFailure(why) ? why : ended)
    await pause(ms, undefined, { signal }).catch(() => undefined)
    if (signal.aborted) break
  }
  if (last !== undefined) screen.err(placed())
}
