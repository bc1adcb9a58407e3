/**
 * Agents, the port between the conductor and the workers' agents, whichever bus is between them.
 *
 * Source: document 2 §1, §8 worker.command_timeout_seconds; DECISIONS, document 2, workers.
 */
import { Context, type Effect, type Scope } from "effect"
import type { JobId, WorkerId } from "#schemas/share-protection/id.ts"
import type { JobOrder } from "#schemas/share-protection/job-order.ts"
import type { WorkerUnavailable } from "#schemas/share-protection/rejection.ts"

/** What an agent answers to. Whatever is asked of it may be asked again. */
export interface Agent {
  /** Takes a job, which it begins only then; the same order again is taken once. */
  readonly offer: (order: JobOrder) => Effect.Effect<void, WorkerUnavailable>
  /**
   * Whether it has the job by this fence. If so it stops it, and frees its slot and its lease when
   * that is done; if not, nothing of it runs there, nor ever will.
   */
  readonly cancel: (job_id: JobId, fence: number) => Effect.Effect<boolean>
}

export class Agents extends Context.Service<
  Agents,
  {
    /**
     * Puts an order before a worker. Fails when it refuses, and when it does not answer within
     * worker.command_timeout_seconds: then it may have taken it, and be refused as it begins.
     */
    readonly offer: (worker_id: WorkerId, order: JobOrder) => Effect.Effect<void, WorkerUnavailable>
    /** As the agent answers. Fails when it does not within worker.command_timeout_seconds. */
    readonly cancel: (
      worker_id: WorkerId,
      job_id: JobId,
      fence: number,
    ) => Effect.Effect<boolean, WorkerUnavailable>
    /** Puts what is asked of this worker before this agent, until the scope ends. */
    readonly attach: (worker_id: WorkerId, agent: Agent) => Effect.Effect<void, never, Scope.Scope>
  }
>()("actors/share-protection/Agents") {}
