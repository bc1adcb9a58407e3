/**
 * One request of a share protection tenant or operator that changes something: sent, recorded in
 * the ledger, and sent again with the same name if its outcome is unknown.
 */
import { type Answer, type Client, NoAnswer, responseText } from "./client.ts"
import type { Ledger, State } from "./ledger.ts"

/** The event that confirms the request; each such request produces exactly one. */
export type Done =
  | ("TargetCreated" | "TargetDeleted" | "PolicyDefined" | "PolicyDeleted")
  | ("BackupRequested" | "BackupDeleted" | "JobCancelled" | "JobRetried")

/** Everything known about one data folder's share protection from all its rounds. */
export interface Known {
  readonly ledger: Ledger
  /** Ids of targets, policies and backups, by the clients' own names for them. */
  readonly ids: Map<string, string>
  /** Ids of the backups' jobs, by the same names. */
  readonly jobs: Map<string, string>
  /** Queries the outcome of a subject in doubt, with the same name and key. */
  readonly again: Map<string, (as: Clients) => Promise<State>>
  /** Source of unique names. */
  next: number
}

/** Connections by caller name. */
export type Clients = Readonly<Record<Caller, Client>>
export type Caller = "tenant" | "tenant_b" | "admin"

export interface Request {
  readonly done: Done
  readonly subject: string
  readonly after: State
  readonly as: Caller
  readonly method: string
  readonly path: string
  readonly body?: object
  /** The status that confirms the request. */
  readonly status: number
  /** Codes with which the request may be rejected, because the schedule was faster. */
  readonly refused?: ReadonlyArray<string>
}

export interface Sending {
  readonly known: Known
  readonly clients: Clients
  /** Whether the server is being stopped, so that a missing response is not an error. */
  readonly is_over: () => boolean
}

export const sent = ({ as, method, path, body }: Request, clients: Clients, name: string) =>
  clients[as].ask(method, path, {
    headers: {
      "x-request-id": name,
      "idempotency-key": name,
      ...(body === undefined ? {} : { "content-type": "application/json" }),
    },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  })

interface Told {
  readonly id?: string
  readonly code?: string
  readonly job?: { readonly id: string }
  readonly target?: { readonly id: string }
  readonly backup?: { readonly id: string }
}

const bodyOf = ({ body }: Answer): Told => (body.length === 0 ? {} : JSON.parse(body.toString()))

/** Records the ids in the response to a creation. */
const learn = ({ ids, jobs }: Known, { subject, done }: Request, answer: Answer) => {
  const { id, job, target, backup } = bodyOf(answer)
  const made = target?.id ?? backup?.id ?? (done === "PolicyDefined" ? id : undefined)
  if (made === undefined) return
  const before = ids.get(subject)
  if (before !== undefined && before !== made) {
    throw new Error(`${subject} was made twice: ${before} and ${made}`)
  }
  ids.set(subject, made)
  if (backup !== undefined && job !== undefined) jobs.set(subject, job.id)
}

const isRefusal = ({ refused = [] }: Request, answer: Answer) =>
  answer.status >= 400 && answer.status < 500 && refused.includes(bodyOf(answer).code ?? "")

/** Returns whether the request took effect: undefined if unknown. */
export const request = async (sending: Sending, request: Request) => {
  const { known, clients, is_over } = sending
  const { subject, after, done } = request
  const name = `${done}-${known.next++}`
  const before = known.ledger.stateOf(subject)
  const answer = await sent(request, clients, name).catch((cause: unknown) => {
    if (cause instanceof NoAnswer && is_over()) return undefined
    throw cause
  })
  if (answer === undefined || (answer.status === 503 && is_over())) {
    known.again.set(subject, (later) => repeated(known, request, later, name, before))
    known.ledger.note({ name, subject, before, after, is_acknowledged: false })
    return undefined
  }
  const is_done = answer.status === request.status
  if (!is_done && !isRefusal(request, answer)) {
    throw new Error(`${name}: ${request.method} ${request.path}: ${responseText(answer)}`)
  }
  if (is_done) learn(known, request, answer)
  known.ledger.note({
    name,
    subject,
    before,
    is_acknowledged: true,
    after: is_done ? after : before,
  })
  return is_done ? name : undefined
}

/** A resource that was already deleted returns 404. */
const isGone = ({ method }: Request, { status }: Answer) => method === "DELETE" && status === 404

const repeated = async (
  known: Known,
  request: Request,
  clients: Clients,
  name: string,
  before: State,
): Promise<State> => {
  const answer = await sent(request, clients, name)
  if (isRefusal(request, answer)) return before
  if (answer.status !== request.status && !isGone(request, answer)) {
    throw new Error(`${name} again: ${request.method} ${request.path}: ${responseText(answer)}`)
  }
  learn(known, request, answer)
  return request.after
}
