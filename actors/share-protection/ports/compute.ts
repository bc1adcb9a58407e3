/**
 * Compute: the port to the machines on which workers run.
 *
 * Source: document 2 §8 conductor.worker_boot_image, §9; DECISIONS, document 2, workers.
 */
import { Context, type Effect } from "effect"
import type { DomainId, ProjectId, WorkerId } from "#schemas/share-protection/id.ts"
import type { BackendUnavailable, WorkerUnavailable } from "#schemas/share-protection/rejection.ts"

/** A machine image. */
export interface Image {
  readonly name: string
  readonly properties: {
    /** Whether the image has the property svc_worker_image=1, which every worker image needs. */
    readonly svc_worker_image: boolean
    /** The property of that name; null if the image has none. */
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

/** `booting` until the machine runs; `gone` also if there never was one. */
export type MachineState = "booting" | "active" | "gone"

export class Compute extends Context.Service<
  Compute,
  {
    /** The newest image of that name; undefined if there is none. */
    readonly image: (name: string) => Effect.Effect<Image | undefined, BackendUnavailable>
    /**
     * Requests a machine whose agent registers under this id; returns before the machine runs.
     * Idempotent for each id. WorkerUnavailable: no capacity, or no such image.
     */
    readonly boot: (boot: Boot) => Effect.Effect<void, WorkerUnavailable | BackendUnavailable>
    /** Deletes the machine; has no effect if there is none. */
    readonly destroy: (worker_id: WorkerId) => Effect.Effect<void, BackendUnavailable>
    readonly find: (worker_id: WorkerId) => Effect.Effect<MachineState, BackendUnavailable>
  }
>()("actors/share-protection/Compute") {}

/** `image` of Compute alone, for processes that do not boot machines themselves. */
export class Images extends Context.Service<Images, Pick<Compute["Service"], "image">>()(
  "actors/share-protection/Images",
) {}
