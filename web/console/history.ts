/** Loads the history of an aggregate: a window of commits, and the state before the first. */
import type { AuditCommit, AuditEvent, AuditHistory, AuditPage, AuditState, Chart } from "./api.ts"
import { get, type Problem, type Result } from "./client.ts"

/** Commits per request, and per window of the slider. */
const page_commits = 250
const window_commits = 1000

export interface HistoryWindow {
  /** `<service>.<aggregate>.<id>` */
  readonly of: string
  /** Oldest first. */
  readonly commits: readonly AuditCommit[]
  /** State before the first commit; undefined if that is the aggregate's first. */
  readonly before: unknown
  readonly value_before: unknown
  readonly is_from_start: boolean
  /** Whether there are commits after the window. */
  readonly has_later: boolean
}

const pathOf = (of: string) => {
  const [service = "", aggregate = "", ...id] = of.split(".")
  const parts = [service, aggregate, id.join(".")].map(encodeURIComponent)
  return `/v1/admin/audit/${parts.join("/")}`
}

/** The state just before a position; undefined if the aggregate did not exist. */
const stateBefore = async (of: string, position: number) => {
  if (position <= 1) return undefined
  const result = await get<AuditState>(`${pathOf(of)}?position=${position - 1}`)
  return result.kind === "ok" ? result.body.state : undefined
}

/** Requests the commits after `marker`, up to a full window. */
const windowAfter = async (of: string, marker: number): Promise<Result<AuditHistory>> => {
  const commits: AuditCommit[] = []
  let after = String(marker)
  for (;;) {
    const query = new URLSearchParams({ limit: String(page_commits), marker: after })
    const result = await get<AuditHistory>(`${pathOf(of)}?${query}`)
    if (result.kind === "problem") return result
    commits.push(...result.body.commits)
    const { next_marker } = result.body
    if (next_marker === undefined || commits.length >= window_commits) {
      return { kind: "ok", body: { ...result.body, commits } }
    }
    after = next_marker
  }
}

/** The window that begins after `marker`. */
const pastAfter = async (of: string, marker: number): Promise<Result<HistoryWindow>> => {
  const [result, state] = await Promise.all([windowAfter(of, marker), stateBefore(of, marker + 1)])
  if (result.kind === "problem") return result
  const { commits, next_marker } = result.body
  const history: HistoryWindow = {
    of,
    commits,
    before: state?.context,
    value_before: state?.value,
    is_from_start: state === undefined,
    has_later: next_marker !== undefined,
  }
  return { kind: "ok", body: history }
}

/** The window from the first commit, or from `at` if the first window does not contain it. */
export const fetchHistory = async (
  of: string,
  at: number | undefined,
): Promise<Result<HistoryWindow>> => {
  const first = await pastAfter(of, 0)
  if (first.kind === "problem" || at === undefined || !first.body.has_later) return first
  const last = first.body.commits.at(-1)?.position ?? 0
  return at <= last ? first : pastAfter(of, at - 1)
}

export const fetchLater = (history: HistoryWindow): Promise<Result<HistoryWindow>> =>
  pastAfter(history.of, history.commits.at(-1)?.position ?? 0)

export const fetchEarliest = ({ of }: HistoryWindow): Promise<Result<HistoryWindow>> =>
  pastAfter(of, 0)

/** The history with new commits appended; undefined if there are none. */
export const fetchNew = async (history: HistoryWindow): Promise<HistoryWindow | undefined> => {
  const last = history.commits.at(-1)?.position ?? 0
  if (history.has_later || history.commits.length >= window_commits) return undefined
  const result = await windowAfter(history.of, last)
  if (result.kind === "problem" || result.body.commits.length === 0) return undefined
  const commits = [...history.commits, ...result.body.commits]
  return { ...history, commits, has_later: result.body.next_marker !== undefined }
}

let charts: readonly Chart[] | undefined

/** The chart of an aggregate; charts are constant while the server runs. */
export const fetchChart = async (of: string): Promise<Chart | Problem | undefined> => {
  if (charts === undefined) {
    const result = await get<{ readonly charts: readonly Chart[] }>("/v1/admin/charts")
    if (result.kind === "problem") return result.problem
    charts = result.body.charts
  }
  const kind = of.split(".", 2).join(".")
  return charts.find(({ id }) => id === kind)
}

const is_kind = /^[a-z-]+\.[a-z-]+$/
/** Number of recent events to search. */
export const search_events_max = 200

export interface FoundAggregates {
  readonly of: readonly string[]
  /** Whether the search covered all events. */
  readonly is_all: boolean
}

/** Aggregates of a kind, or with events on this subject, most recently changed first. */
export const findAggregates = async (text: string): Promise<Result<FoundAggregates>> => {
  const [service = "", aggregate = ""] = text.split(".")
  const what = is_kind.test(text) ? { service, aggregate } : { subject: text }
  const query = new URLSearchParams({ ...what, limit: `${search_events_max}` })
  const result = await get<AuditPage>(`/v1/admin/audit?${query}`)
  if (result.kind === "problem") return result
  const nameOf = (event: AuditEvent) => `${event.service}.${event.aggregate}.${event.id}`
  const { events, next_marker } = result.body
  const of = [...new Set(events.map(nameOf))]
  return { kind: "ok", body: { of, is_all: next_marker === undefined } }
}
