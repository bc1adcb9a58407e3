/** Contract of every Compute adapter. */
import { assert } from "@effect/vitest"
import { Effect, Schedule, type Scope } from "effect"
import { v7 } from "uuid"
import { type Boot, Compute, type MachineState } from "#actors/share-protection/ports/compute.ts"
import { ProjectId, WorkerId } from "#schemas/share-protection/id.ts"
import { WorkerUnavailable } from "#schemas/share-protection/rejection.ts"

type Made<A> = Effect.Effect<A, unknown, Compute | Scope.Scope>

/** Where machines boot. */
export interface ComputePlace {
  /** Existing images: one for workers with an engine version, and one for something else. */
  readonly images: {
    readonly worker: string
    readonly engine_version: string
    readonly other: string
  }
  readonly project_id: string
  /** The number of a worker's machines, including those still booting. */
  readonly machines: (worker_id: WorkerId) => Made<number>
  /** Milliseconds in which a machine becomes active or disappears. */
  readonly patience_ms: number
}

type Test = (name: string, body: (place: ComputePlace) => Made<void>) => void

const boot = ({ project_id, images }: ComputePlace, image = images.worker): Boot => ({
  worker_id: WorkerId.make(v7()),
  image,
  project_id: ProjectId.make(project_id),
  domain_id: null,
})

/** Polls until the machine reaches the state. */
const becomes = Effect.fnUntraced(function* (
  { patience_ms }: ComputePlace,
  worker_id: WorkerId,
  state: MachineState,
) {
  const { find } = yield* Compute
  const found = yield* Effect.repeat(find(worker_id), {
    until: (now) => now === state,
    schedule: Schedule.spaced(patience_ms / 100),
    times: 100,
  })
  assert.equal(found, state)
})

export const computeContract = (test: Test) => {
  test("knows an image by its name, and what it is for", (place) =>
    Effect.gen(function* () {
      const { image } = yield* Compute
      const { worker, other, engine_version } = place.images
      const properties = { svc_worker_image: true, engine_version }
      assert.deepEqual(yield* image(worker), { name: worker, properties })
      assert.isFalse((yield* image(other))?.properties.svc_worker_image)
      assert.isUndefined(yield* image("there-is-no-such-image"))
    }))

  test("boots a machine, and lets it go", (place) =>
    Effect.gen(function* () {
      const compute = yield* Compute
      const bootRequest = boot(place)
      const { worker_id } = bootRequest
      assert.equal(yield* compute.find(worker_id), "gone")
      yield* compute.boot(bootRequest)
      assert.include(["booting", "active"], yield* compute.find(worker_id))
      yield* becomes(place, worker_id, "active")
      yield* compute.destroy(worker_id)
      yield* becomes(place, worker_id, "gone")
      assert.equal(yield* place.machines(worker_id), 0)
    }))

  test("boots one machine for a worker, however often it is asked", (place) =>
    Effect.gen(function* () {
      const compute = yield* Compute
      const bootRequest = boot(place)
      yield* Effect.all([compute.boot(bootRequest), compute.boot(bootRequest)], { concurrency: 2 })
      yield* becomes(place, bootRequest.worker_id, "active")
      yield* compute.boot(bootRequest)
      assert.equal(yield* place.machines(bootRequest.worker_id), 1)
      yield* compute.destroy(bootRequest.worker_id)
    }))

  test("lets a machine go while it boots, and twice", (place) =>
    Effect.gen(function* () {
      const compute = yield* Compute
      const bootRequest = boot(place)
      yield* compute.destroy(bootRequest.worker_id)
      yield* compute.boot(bootRequest)
      yield* compute.destroy(bootRequest.worker_id)
      yield* compute.destroy(bootRequest.worker_id)
      yield* becomes(place, bootRequest.worker_id, "gone")
    }))

  test("keeps machines apart", (place) =>
    Effect.gen(function* () {
      const compute = yield* Compute
      const [one, other] = [boot(place), boot(place)]
      yield* compute.boot(one)
      yield* compute.boot(other)
      yield* compute.destroy(one.worker_id)
      yield* becomes(place, one.worker_id, "gone")
      yield* becomes(place, other.worker_id, "active")
      yield* compute.destroy(other.worker_id)
    }))

  test("creates no machine of a missing image", (place) =>
    Effect.gen(function* () {
      const compute = yield* Compute
      const bootRequest = boot(place, "there-is-no-such-image")
      const failure: unknown = yield* Effect.flip(compute.boot(bootRequest))
      assert.instanceOf(failure, WorkerUnavailable)
      assert.equal(yield* compute.find(bootRequest.worker_id), "gone")
    }))
}
