/** `almanac events follow`: streams published events. Source: DECISIONS. */
import type { IncomingMessage } from "node:http"
import { setTimeout as pause } from "node:timers/promises"
import { failure, isFailure } from "#cli/client/failure.ts"
import { formatValue, printable } from "#cli/client/format.ts"
import { fromJson, type Json, memberAt, textAt, toJson } from "#cli/client/json.ts"
import type { CommandGroup } from "#cli/client/operation.ts"
import { addressOf } from "#cli/client/request.ts"
import type { Screen } from "#cli/client/screen.ts"
import type { Session } from "#cli/client/session.ts"
import { truncated } from "#cli/client/table.ts"

/** Idle timeout: the server sends a comment every 15 s. */
const silence_ms_max = 45_000

/** Maximum size of an event, in characters: at most one commit, of 512 KB. */
const event_chars_max = 2 ** 21

/** Backoff between two connections, in ms: the first and the longest without Retry-After. */
const reconnect_ms = { first: 250, max: 10_000 }

/** Longest Retry-After that is honoured, in ms. */
const retry_after_ms_max = 3_600_000

/** Maximum number of distinct reasons to print per outage. */
const reasons_max = 20

/** Keeps the power of two finite; the maximum backoff applies long before. */
const doublings_max = 16

/** `follow` is in cli/events.ts. */
export const events: CommandGroup = {
  name: "events",
  operations: [
    {
      command: "ticket",
      method: "POST",
      path: "/v1/events/tickets",
      what: "Issue a ticket for an EventSource, valid for 60 s and while a stream is open",
    },
  ],
  covered: [{ method: "GET", path: "/v1/events", query: ["service", "type", "subject", "since"] }],
}

export interface FollowOptions {
  readonly filters: ReadonlyArray<readonly [string, string]>
  /** Starts after the event of this id, `<epoch>-<sequence>`; 0 starts with the first event. */
  readonly after: string | undefined
  /** Ends after this many events; 0 continues until interrupted. */
  readonly count: number
  /** Gives up after an outage of this many seconds; undefined: never. */
  readonly retry_for_s?: number | undefined
}

interface StreamEvent {
  readonly id: string
  readonly data: string
}

/** Parses a stream of server-sent events; ignores comments, which are keep-alives. */
export async function* eventsIn(
  parts: AsyncIterable<Uint8Array>,
  onData: () => void = () => undefined,
): AsyncGenerator<StreamEvent> {
  const decoder = new TextDecoder()
  let rest = ""
  let id = ""
  let data: Array<string> = []
  let data_chars = 0
  for await (const part of parts) {
    onData()
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

/** One event as a line, which a terminal's width truncates. */
const lineOf = (event: Json, { columns }: Screen) => {
  const time = formatValue("time", textAt(event, "time"))
  const source = (textAt(event, "source") ?? "").replace("/almanac/", "")
  const data = printable(toJson(memberAt(event, "data") ?? null))
  const text = [time, textAt(event, "type") ?? "", textAt(event, "subject") ?? "", source, data]
  const line = text.map((one, i) => (i < text.length - 1 ? printable(one) : one)).join("  ")
  return columns === undefined ? line : truncated(line, columns)
}

/**
 * Start of the stream by the server's clock. ClientFailed if the response is not an event stream.
 */
const streamStart = (response: IncomingMessage) => {
  const { "content-type": type = "nothing", date } = response.headers
  if (!type.startsWith("text/event-stream")) {
    response.destroy()
    const what = `The response is not an event stream, but ${printable(type)}`
    throw failure("failed", what, "check that the address is that of an Almanac server")
  }
  const ms = Date.parse(date ?? "")
  return Number.isNaN(ms) ? undefined : new Date(ms).toISOString()
}

/** Whether a retry cannot help: a rejected request, or a response that is not an event stream. */
const isFinal = (cause: unknown) => isFailure(cause) && cause.retry_after_ms === undefined

const stream_ended = failure("unreachable", "The stream of events ended", undefined, 0)

/** Tracks an outage of the server: backoff, duration, and each reason printed once. */
const outage = ({ screen }: Session, pace: typeof reconnect_ms) => {
  let from_ms: number | undefined
  let tries = 0
  let is_known = false
  const printed = new Set<string>()
  return {
    /** The next wait in ms, and the length of the outage after it. */
    next: (cause: unknown, last: string | undefined) => {
      from_ms ??= performance.now()
      const requested_ms = isFailure(cause) ? (cause.retry_after_ms ?? 0) : 0
      // A first reconnection usually succeeds at once, so it is silent.
      const is_news = tries > 0 || !is_known || requested_ms > 0
      const backoff_ms = pace.first * 2 ** Math.min(doublings_max, tries++)
      const ms = Math.max(
        Math.min(pace.max, backoff_ms),
        Math.min(requested_ms, retry_after_ms_max),
      )
      const { message } = isFailure(cause) ? cause : stream_ended
      if (is_news && !printed.has(message) && printed.size < reasons_max) {
        // Print the advice only before the first connection.
        const reason = is_known ? message.split("\n", 1) : message
        const delay = requested_ms > 0 ? `in ${Math.ceil(ms / 1000)} s` : "until it succeeds"
        const place = last === undefined ? "" : `; the last event was ${last}`
        screen.err(`${reason}\n  reconnecting ${delay}${place}.\n`)
        printed.add(message)
      }
      return { ms, away_ms: performance.now() - from_ms + ms }
    },
    end: () => {
      if (printed.size > 0) screen.err("Connected again.\n")
      printed.clear()
      from_ms = undefined
      tries = 0
      is_known = true
    },
  }
}

/**
 * Prints events until it is interrupted or has printed `count`. Reconnects if the stream breaks or
 * the server is offline or requests a wait, for at most `retry_for_s`.
 */
export const follow = async (
  session: Session,
  { filters, after, count, retry_for_s = Number.POSITIVE_INFINITY }: FollowOptions,
  pace = reconnect_ms,
) => {
  const { http, screen, output, signal } = session
  let last = after
  // Before the first event, a reconnection resumes from the start of the first stream.
  let since: string | undefined
  let printed = 0
  const current_outage = outage(session, pace)
  const resumeHint = () => `To continue from here: almanac events follow --after ${last}\n`
  const failed = (cause: unknown) => {
    // A refusal concerns the position itself: the server was restored to an earlier state.
    const is_refused = isFinal(cause) && isFailure(cause) && cause.ending === "refused"
    if (printed > 0 && !is_refused) screen.err(resumeHint())
    return cause
  }
  for (;;) {
    let reason: unknown = stream_ended
    try {
      const query =
        last === undefined && since !== undefined
          ? [...filters, ["since", since] as const]
          : filters
      const response: IncomingMessage = await http.open({
        method: "GET",
        path: addressOf("/v1/events", query),
        need: "admin",
        signal,
        // Retries are handled below.
        silence_ms: silence_ms_max,
        is_repeatable: false,
        headers: {
          accept: "text/event-stream",
          ...(last !== undefined && { "last-event-id": last }),
        },
      })
      const started_at = streamStart(response)
      since ??= started_at
      for await (const { id, data } of eventsIn(response, current_outage.end)) {
        last = id
        const event = fromJson(data)
        screen.out(`${output.json ? toJson(event) : lineOf(event, screen)}\n`)
        printed++
        if (printed === count) return response.destroy()
        // Backpressure: wait for a slow reader.
        await screen.drained(signal)
      }
    } catch (cause) {
      if (signal.aborted) break
      if (isFinal(cause)) throw failed(cause)
      reason = cause
    }
    if (signal.aborted) break
    const { ms, away_ms } = current_outage.next(reason, last)
    if (away_ms > retry_for_s * 1000) throw failed(isFailure(reason) ? reason : stream_ended)
    await pause(ms, undefined, { signal }).catch(() => undefined)
    if (signal.aborted) break
  }
  if (last !== undefined) screen.err(resumeHint())
}
