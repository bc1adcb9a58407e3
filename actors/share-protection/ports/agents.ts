/**
 * Agents: the port from the conductor to the workers' agents.
 *
 * Source: document 2 §1, §8 worker.command_timeout_seconds; DECISIONS, document 2, workers.
 */
import { Context, type Effect, type Scope } from "effect"
import type { JobId, WorkerId } from "#schemas/share-protection/id.ts"
import type { JobOrder } from "#schemas/share-protection/job-order.ts"
import type { WorkerUnavailable } from "#schemas/share-protection/rejection.ts"

/** The requests that an agent handles. All of them are idempotent. */
export interface Agent {
  /** Accepts a job and starts it. A repeated order has no effect. */
  readonly offer: (order: JobOrder) => Effect.Effect<void, WorkerUnavailable>
  /**
   * Stops the job and returns true if the agent runs it by this fence; the agent then frees its
   * slot and its lease. False: no part of the job runs there, nor ever will.
   */
  readonly cancel: (job_id: JobId, fence: number) => Effect.Effect<boolean>
}

export class Agents extends Context.Service<
  Agents,
  {
    /**
     * Offers an order to a worker. Fails if the worker rejects it, or does not respond within
     * worker.command_timeout_seconds. In that case the worker may have accepted it, and the log
     * then rejects its start.
     */
    readonly offer: (worker_id: WorkerId, order: JobOrder) => Effect.Effect<void, WorkerUnavailable>
    /** The agent's response. Fails after worker.command_timeout_seconds without one. */
    readonly cancel: (
      worker_id: WorkerId,
      job_id: JobId,
      fence: number,
    ) => Effect.Effect<boolean, WorkerUnavailable>
    /** Routes the requests for this worker to this agent until the scope ends. */
    readonly attach: (worker_id: WorkerId, agent: Agent) => Effect.Effect<void, never, Scope.Scope>
  }
>()("actors/share-protection/Agents") {}
