/** The event history that a server returns to its operators and to its subscribers. */
import { get } from "node:http"
import type { Client } from "./client.ts"

/** Maximum number of events on an audit page. */
const page_limit = 1_000
/** Maximum delay until subscribers receive the log's events, in milliseconds. */
const published_ms_max = 30_000

export interface AuditEvent {
  readonly position: number
  readonly index: number
  readonly service: string
  readonly aggregate: string
  readonly id: string
  readonly subject: string
  readonly type: string
  readonly correlation_id?: string
  readonly data: Readonly<Record<string, unknown>>
}

interface AuditPage {
  readonly events: ReadonlyArray<AuditEvent>
  readonly next_marker?: string
}

/** Every event of the log in order; `known` events are not requested again. */
export const auditEvents = async (admin: Client, known: ReadonlyArray<AuditEvent>) => {
  const events = [...known]
  const last = events.at(-1)
  let marker = last === undefined ? undefined : `${last.position}.${last.index}`
  do {
    const request = { order: "asc", limit: String(page_limit), ...(marker && { marker }) }
    const page: AuditPage = await admin.json(
      "GET",
      `/v1/admin/audit?${new URLSearchParams(request)}`,
    )
    events.push(...page.events)
    marker = page.next_marker
  } while (marker !== undefined)
  return events
}

export interface PublishedEvent {
  readonly sequence: number
  readonly event: { readonly id: string; readonly type: string; readonly subject: string }
}

const parsed = (text: string): PublishedEvent | undefined => {
  const sequence = /^id: (?:[\w-]+-)?(\d+)$/m.exec(text)?.[1]
  const data = /^data: (.*)$/m.exec(text)?.[1]
  if (sequence === undefined || data === undefined) return undefined
  return { sequence: Number(sequence), event: JSON.parse(data) }
}

/** The first `count` events that subscribers receive, from the beginning of the history. */
export const publishedEvents = ({ url, authorization }: Client, count: number) =>
  new Promise<ReadonlyArray<PublishedEvent>>((resolve, reject) => {
    const events: Array<PublishedEvent> = []
    const headers = { authorization, "last-event-id": "0" }
    const request = get(new URL("/v1/events", url), { headers, agent: false }, (response) => {
      let rest = ""
      response.setEncoding("utf8").on("data", (text: string) => {
        const blocks = (rest + text).split("\n\n")
        rest = blocks.pop() ?? ""
        events.push(...blocks.flatMap((block) => parsed(block) ?? []))
        if (events.length >= count) finish()
      })
      response.on("error", reject)
      response.on("end", () => reject(new Error(`the stream ended after ${events.length} events`)))
    })
    const finish = () => {
      clearTimeout(late)
      request.destroy()
      resolve(events.slice(0, count))
    }
    const late = setTimeout(() => {
      request.destroy()
      reject(new Error(`${events.length} of ${count} events within ${published_ms_max} ms`))
    }, published_ms_max)
    request.on("error", reject)
  })
