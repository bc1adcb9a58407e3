/**
 * Compute, the port to the machines that workers run on.
 *
 * Source: document 2 §8 conductor.worker_boot_image, §9; DECISIONS, document 2, workers.
 */
import { Context, type Effect } from "effect"
import type { DomainId, ProjectId, WorkerId } from "#schemas/share-protection/id.ts"
import type { BackendUnavailable, WorkerUnavailable } from "#schemas/share-protection/rejection.ts"

/** What a machine is made from. */
export interface Image {
  readonly name: string
  readonly properties: {
    /** Whether it carries svc_worker_image=1: only such a one becomes a worker. */
    readonly svc_worker_image: boolean
    /** As the image says; null where it says nothing. */
    readonly engine_version: string | null
  }
}

export interface Boot {
  readonly worker_id: WorkerId
  /** Name of the image. */
  readonly image: string
  readonly project_id: ProjectId
  readonly domain_id: DomainId | null
}

/** `booting` until the machine runs; `gone` also where there never was one. */
export type MachineState = "booting" | "active" | "gone"

export class Compute extends Context.Service<
  Compute,
  {
    /** The newest image of that name; undefined where there is none. */
    readonly image: (name: string) => Effect.Effect<Image | undefined, BackendUnavailable>
    /**
     * Asks for a machine whose agent registers under this id; it answers before the machine runs.
     * For the same id there is one machine, however often it is asked for. WorkerUnavailable:
     * there is no room for it, or no such image.
     */
    readonly boot: (boot: Boot) => Effect.Effect<void, WorkerUnavailable | BackendUnavailable>
    /** Lets the machine go; without effect where there is none. */
    readonly destroy: (worker_id: WorkerId) => Effect.Effect<void, BackendUnavailable>
    readonly find: (worker_id: WorkerId) => Effect.Effect<MachineState, BackendUnavailable>
  }
>()("actors/share-protection/Compute") {}

/** What machines are made from, also where another process boots them: `image` of Compute. */
export class Images extends Context.Service<Images, Pick<Compute["Service"], "image">>()(
  "actors/share-protection/Images",
) {}
