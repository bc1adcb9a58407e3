/** The in-memory bus between the conductor and the agents: messages arrive immediately. */
import { Duration, Effect, Layer } from "effect"
import { type Agent, Agents } from "#actors/share-protection/ports/agents.ts"
import type { WorkerId } from "#schemas/share-protection/id.ts"
import { WorkerUnavailable } from "#schemas/share-protection/rejection.ts"

export interface AgentsMemoryOptions {
  readonly command_timeout_seconds: number
}

export const agentsMemory = ({ command_timeout_seconds }: AgentsMemoryOptions) =>
  Layer.sync(Agents, () => {
    const attached = new Map<WorkerId, Agent>()

    const asking = <A>(
      worker_id: WorkerId,
      ask: (agent: Agent) => Effect.Effect<A, WorkerUnavailable>,
    ) =>
      Effect.suspend(() => {
        const agent = attached.get(worker_id)
        // Without a listener there is no response.
        return agent === undefined ? Effect.never : ask(agent)
      }).pipe(
        Effect.timeoutOrElse({
          duration: Duration.seconds(command_timeout_seconds),
          orElse: () => {
            const detail = `Worker ${worker_id} did not reply within ${command_timeout_seconds} s.`
            return Effect.fail(new WorkerUnavailable({ detail }))
          },
        }),
      )

    return Agents.of({
      offer: (worker_id, order) => asking(worker_id, ({ offer }) => offer(order)),
      cancel: (worker_id, job_id, fence) =>
        asking(worker_id, ({ cancel }) => cancel(job_id, fence)),
      attach: (worker_id, agent) =>
        Effect.asVoid(
          Effect.acquireRelease(
            Effect.sync(() => attached.set(worker_id, agent)),
            () =>
              Effect.sync(() => attached.get(worker_id) === agent && attached.delete(worker_id)),
          ),
        ),
    })
  })
