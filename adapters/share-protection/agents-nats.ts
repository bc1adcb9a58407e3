/**
 * Agents over the bus. An order is a request to `agent.<worker id>.offer`, which the agent accepts
 * or refuses; a cancellation is one to `agent.<worker id>.cancel`. If no agent is subscribed, the
 * request fails immediately.
 *
 * Source: document 2 §8 worker.command_timeout_seconds; DECISIONS, document 2, workers.
 */
import {
  headers,
  type Msg,
  type NatsConnection,
  NoRespondersError,
  RequestError,
} from "@nats-io/transport-node"
import { Effect, FiberSet, Layer, Option, Schema } from "effect"
import { type Agent, Agents } from "#actors/share-protection/ports/agents.ts"
import { agentSubject } from "#adapters/share-protection/worker-users.ts"
import { core_inbox, type Link, overLink, sendResponse as respond, watchLink } from "#bus"
import { type Trace, traceNow, underTrace } from "#events/trace.ts"
import { JobId, type WorkerId } from "#schemas/share-protection/id.ts"
import { JobOrder, job_order_bytes_max } from "#schemas/share-protection/job-order.ts"
import { WorkerUnavailable } from "#schemas/share-protection/rejection.ts"
import { Count, Reason } from "#schemas/share-protection/text.ts"

export interface AgentsOptions {
  /** worker.command_timeout_seconds */
  readonly command_timeout_seconds: number
}

/** Maximum timeout of a cancellation in seconds; the conductor retries it. */
const cancel_timeout_s_max = 30

/** Maximum concurrent requests of an agent, far more than its conductor sends. */
const concurrent_max = 256

/** Maximum size of a message: an order in an envelope. Responses are far smaller. */
const message_bytes_max = job_order_bytes_max + 1024

const Offer = Schema.fromJsonString(JobOrder)
const Cancel = Schema.fromJsonString(Schema.Struct({ job_id: JobId, fence: Count }))

/**
 * `taken`: the agent accepted the order, or stopped the job. Otherwise `detail` may have the
 * reason.
 */
const AgentResponse = Schema.fromJsonString(
  Schema.Struct({ taken: Schema.Boolean, detail: Schema.optionalKey(Reason) }),
)
type AgentResponse = typeof AgentResponse.Type

/** Sends requests over this connection, and serves them for the attached agents. */
export const agentsNats = (
  connection: NatsConnection,
  { command_timeout_seconds }: AgentsOptions,
) =>
  Layer.effect(
    Agents,
    Effect.gen(function* () {
      const link = yield* watchLink(connection)
      const send = (request: AgentRequest) => sendRequest(connection, link, request)
      const cancel_s = Math.min(command_timeout_seconds, cancel_timeout_s_max)
      return Agents.of({
        offer: Effect.fnUntraced(function* (worker_id, order) {
          const text = Schema.encodeSync(Offer)(order)
          const { taken, detail } = yield* send({
            worker_id,
            operation: "offer",
            text,
            timeout_s: command_timeout_seconds,
          })
          if (!taken) return yield* refusal(detail ?? "The worker rejects the job command.")
        }),
        cancel: Effect.fnUntraced(function* (worker_id, job_id, fence) {
          const text = Schema.encodeSync(Cancel)({ job_id, fence })
          return (yield* send({ worker_id, operation: "cancel", text, timeout_s: cancel_s })).taken
        }),
        attach: (worker_id, agent) => serveAgent(connection, link, worker_id, agent),
      })
    }),
  )

const refusal = (detail: string) => Effect.fail(new WorkerUnavailable({ detail }))

interface AgentRequest {
  readonly worker_id: WorkerId
  readonly operation: "offer" | "cancel"
  readonly text: string
  readonly timeout_s: number
}

const sendRequest = Effect.fnUntraced(function* (
  connection: NatsConnection,
  link: Link,
  { worker_id, operation, text, timeout_s }: AgentRequest,
) {
  const timeout = Math.ceil(timeout_s * 1000)
  const trace = yield* traceNow
  const options = trace === undefined ? { timeout } : { timeout, headers: traceHeaders(trace) }
  const message = yield* Effect.tryPromise({
    try: () =>
      overLink(link, () => connection.request(agentSubject(worker_id, operation), text, options)),
    catch: (cause) => new WorkerUnavailable({ detail: failureDetail(worker_id, timeout_s, cause) }),
  })
  const response = decodeMessage(AgentResponse, message)
  if (Option.isNone(response)) return yield* refusal(`Worker ${worker_id} sent an invalid reply.`)
  return response.value
})

/** Source: W3C Trace Context. */
const trace_header = "traceparent"

const traceHeaders = (trace: Trace) => {
  const trace_headers = headers()
  trace_headers.set(trace_header, trace)
  return trace_headers
}

const failureDetail = (worker_id: WorkerId, timeout_s: number, cause: unknown) => {
  const has_no_responders = cause instanceof RequestError && cause.isNoResponders()
  if (has_no_responders || cause instanceof NoRespondersError)
    return `Worker ${worker_id} is not connected to the bus.`
  const has_timed_out = cause instanceof Error && cause.name === "TimeoutError"
  return has_timed_out
    ? `Worker ${worker_id} did not reply within ${timeout_s} s.`
    : `Worker ${worker_id} cannot be reached: ${cause}`
}

const decodeMessage = <A>(schema: Schema.Codec<A, string>, message: Msg): Option.Option<A> =>
  message.data.length > message_bytes_max
    ? Option.none()
    : Schema.decodeUnknownOption(schema)(message.string())

const invalid_order: AgentResponse = { taken: false, detail: "The message is not a job command." }

/**
 * The agent's response to a message; an invalid message is refused, so that its sender need not
 * wait.
 */
const handleMessage = (
  agent: Agent,
  worker_id: WorkerId,
  message: Msg,
): Effect.Effect<AgentResponse> => {
  if (message.subject === agentSubject(worker_id, "offer")) {
    const order = decodeMessage(Offer, message)
    if (Option.isNone(order)) return Effect.succeed(invalid_order)
    return Effect.match(agent.offer(order.value), {
      onSuccess: () => ({ taken: true }),
      onFailure: ({ detail }) => ({ taken: false, detail }),
    })
  }
  const cancellation = decodeMessage(Cancel, message)
  if (Option.isNone(cancellation)) return Effect.succeed(invalid_order)
  const { job_id, fence } = cancellation.value
  return Effect.map(agent.cancel(job_id, fence), (taken) => ({ taken }))
}

/**
 * Serves requests for the agent until the scope closes; pending ones get no response after that.
 */
const serveAgent = Effect.fnUntraced(function* (
  connection: NatsConnection,
  link: Link,
  worker_id: WorkerId,
  agent: Agent,
) {
  const active = yield* FiberSet.make<void>()
  const run = yield* FiberSet.runtime(active)<never>()
  let count = 0
  const work = (message: Msg) =>
    handleMessage(agent, worker_id, message).pipe(
      underTrace(message.headers?.get(trace_header)),
      Effect.catchDefect((defect) =>
        Effect.as(Effect.logError("A job command failed.", defect), {
          taken: false,
          detail: "The worker failed; see its log.",
        }),
      ),
      Effect.tap((response) =>
        Effect.sync(() =>
          respond(connection, core_inbox, message, Schema.encodeSync(AgentResponse)(response)),
        ),
      ),
      Effect.asVoid,
      Effect.ensuring(Effect.sync(() => count--)),
    )
  yield* Effect.acquireRelease(
    Effect.sync(() =>
      connection.subscribe(agentSubject(worker_id, "*"), {
        callback: (error, message) => {
          // The sender gets no response and retries.
          if (error !== null || count >= concurrent_max) return
          count++
          run(work(message))
        },
      }),
    ),
    (subscription) => Effect.sync(() => subscription.unsubscribe()),
  )
  // The server has the subscription now; otherwise the client restores it on reconnection.
  yield* Effect.ignore(
    Effect.tryPromise({ try: () => overLink(link, () => connection.flush()), catch: String }),
  )
})
