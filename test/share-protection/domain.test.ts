import { assert, describe, it } from "@effect/vitest"
import { Domain, type DomainContext } from "#actors/share-protection/domain.ts"
import {
  DomainApplied,
  DomainConfigured,
  type DomainEvent,
} from "#events/share-protection/domain.ts"
import { ApplyDomain, ConfigureDomain } from "#schemas/share-protection/domain.ts"
import { longestName } from "../world/share-protection/samples.ts"
import { assertStorable, everyState } from "../world/state-table.ts"

const applied = DomainApplied.make({})
const two = { min_workers: 2 }
const quotas = { targets: 5, backups: 100 }

const states = {
  new: [],
  "configured, not applied": [DomainConfigured.make(two)],
  "configured and applied": [DomainConfigured.make({ ...two, quotas }), applied],
  reset: [DomainConfigured.make(two), applied, DomainConfigured.make({ min_workers: null })],
} satisfies Record<string, ReadonlyArray<DomainEvent>>

const known = (...events: ReadonlyArray<DomainEvent>): DomainContext =>
  events.reduce(Domain.evolve, Domain.initialState).context

const unset = { min_workers: null, max_workers: null, worker_boot_image: null, quotas: null }

describe("a domain's settings", () => {
  everyState(Domain, states, {
    ConfigureDomain: [
      {
        with: "two workers",
        command: ConfigureDomain.make(two),
        in: { "configured, not applied": [], "configured and applied": [] },
        otherwise: [DomainConfigured.make(two)],
      },
      {
        with: "two workers and an image",
        command: ConfigureDomain.make({ ...two, worker_boot_image: "image-2" }),
        in: {
          "configured, not applied": [DomainConfigured.make({ worker_boot_image: "image-2" })],
          "configured and applied": [DomainConfigured.make({ worker_boot_image: "image-2" })],
        },
        otherwise: [DomainConfigured.make({ ...two, worker_boot_image: "image-2" })],
      },
      {
        with: "no number of workers of its own",
        command: ConfigureDomain.make({ min_workers: null }),
        in: { new: [], reset: [] },
        otherwise: [DomainConfigured.make({ min_workers: null })],
      },
      {
        with: "the same quotas in another order",
        command: ConfigureDomain.make({ quotas: { backups: 100, targets: 5 } }),
        in: { "configured and applied": [] },
        otherwise: [DomainConfigured.make({ quotas })],
      },
      { with: "nothing", command: ConfigureDomain.make({}), otherwise: [] },
    ],
    ApplyDomain: [
      {
        command: ApplyDomain.make({}),
        in: { new: [], "configured and applied": [] },
        otherwise: [applied],
      },
    ],
  })

  it("take effect only when they are applied", () => {
    assert.deepEqual(known(...states["configured, not applied"]), {
      settings: { ...unset, ...two },
      applied: unset,
    })
    assert.deepEqual(known(...states["configured, not applied"], applied), {
      settings: { ...unset, ...two },
      applied: { ...unset, ...two },
    })
  })
  it("stay in effect until their reset is applied", () => {
    assert.equal(known(...states.reset).applied.min_workers, 2)
    assert.deepEqual(known(...states.reset, applied), { settings: unset, applied: unset })
  })
  it("keep fields that a later change omits, but quotas are replaced as a whole", () =>
    assert.deepEqual(
      known(...states["configured and applied"], DomainConfigured.make({ quotas: { policies: 1 } }))
        .settings,
      { ...unset, ...two, quotas: { policies: 1 } },
    ))

  it("fit in a snapshot at their longest", () => {
    const count = 2 ** 53 - 1
    const longest = {
      min_workers: 10_000,
      max_workers: 10_000,
      worker_boot_image: longestName(),
      quotas: { targets: count, policies: count, backups: count },
    }
    assertStorable(Domain, [
      DomainConfigured.make(longest),
      applied,
      DomainConfigured.make(longest),
    ])
  })
})
