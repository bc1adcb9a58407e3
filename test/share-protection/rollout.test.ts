import { assert, describe, it } from "@effect/vitest"
import { Result } from "effect"
import { machine, Rollout, type RolloutContext } from "#actors/share-protection/rollout.ts"
import {
  ReplacementCompleted,
  ReplacementStarted,
  RolloutCreated,
  RolloutDomainCompleted,
  type RolloutEvent,
  RolloutHalted,
  RolloutSucceeded,
} from "#events/share-protection/rollout.ts"
import { DomainId, WorkerId } from "#schemas/share-protection/id.ts"
import {
  CompleteReplacement,
  CompleteRolloutDomain,
  CreateRollout,
  FailReplacement,
  rollout_domains_max,
  StartReplacement,
} from "#schemas/share-protection/rollout.ts"
import { given } from "../world/given.ts"
import { histories } from "../world/histories.ts"
import { longest, longestName } from "../world/share-protection/samples.ts"
import { assertStorable, everyState } from "../world/state-table.ts"

const canary = DomainId.make("canary")
const second = DomainId.make("second")
const descriptor = { image: "image-2", domain_ids: [canary, second] }
const pairOf = (old: string, made: string) => ({
  old_worker_id: WorkerId.make(old),
  new_worker_id: WorkerId.make(made),
})
const pair = pairOf("old-1", "new-1")
const other = pairOf("old-2", "new-2")
const reason = "It did not come up within 1200 s."

const created = RolloutCreated.make(descriptor)
const started = (domain_id: typeof canary, of = pair) =>
  ReplacementStarted.make({ ...of, domain_id })
const completed = (domain_id: typeof canary, of = pair) =>
  ReplacementCompleted.make({ ...of, domain_id })
const halted = (domain_id: typeof canary) => RolloutHalted.make({ ...pair, domain_id, reason })
const through = (domain_id: typeof canary) => RolloutDomainCompleted.make({ domain_id })
const succeeded = RolloutSucceeded.make({})

const states = {
  absent: [],
  "at the canary": [created],
  "replacing at the canary": [created, started(canary)],
  "one is replaced": [created, started(canary), completed(canary)],
  "at the last domain": [created, through(canary)],
  "replacing at the last domain": [created, through(canary), started(second)],
  succeeded: [created, through(canary), through(second), succeeded],
  halted: [created, started(canary), halted(canary)],
} satisfies Record<string, ReadonlyArray<RolloutEvent>>

const conflict = "svc.conflict"
const absent = { absent: "svc.not_found" } as const

describe("a rollout", () => {
  everyState(Rollout, states, {
    CreateRollout: [
      {
        command: CreateRollout.make(descriptor),
        in: { absent: [created] },
        otherwise: conflict,
      },
    ],
    StartReplacement: [
      {
        command: StartReplacement.make(pair),
        in: {
          ...absent,
          "at the canary": [started(canary)],
          "one is replaced": [started(canary)],
          "at the last domain": [started(second)],
        },
        otherwise: conflict,
      },
      {
        with: "of another pair",
        command: StartReplacement.make(other),
        in: {
          ...absent,
          "at the canary": [started(canary, other)],
          "one is replaced": [started(canary, other)],
          "at the last domain": [started(second, other)],
        },
        otherwise: conflict,
      },
    ],
    CompleteReplacement: [
      {
        command: CompleteReplacement.make(pair),
        in: {
          ...absent,
          "replacing at the canary": [completed(canary)],
          "replacing at the last domain": [completed(second)],
        },
        otherwise: [],
      },
      ...[
        { ...pair, old_worker_id: other.old_worker_id },
        { ...pair, new_worker_id: other.new_worker_id },
      ].map((mixed) => ({
        with: `of ${mixed.old_worker_id} and ${mixed.new_worker_id}`,
        command: CompleteReplacement.make(mixed),
        in: absent,
        otherwise: [],
      })),
    ],
    FailReplacement: [
      {
        command: FailReplacement.make({ ...pair, reason }),
        in: {
          ...absent,
          "replacing at the canary": [halted(canary)],
          "replacing at the last domain": [halted(second)],
        },
        otherwise: [],
      },
      {
        with: "of another pair",
        command: FailReplacement.make({ ...other, reason }),
        in: absent,
        otherwise: [],
      },
    ],
    CompleteRolloutDomain: [
      {
        with: "of the canary",
        command: CompleteRolloutDomain.make({ domain_id: canary }),
        in: {
          ...absent,
          "at the canary": [through(canary)],
          "one is replaced": [through(canary)],
        },
        otherwise: conflict,
      },
      {
        with: "of the last domain",
        command: CompleteRolloutDomain.make({ domain_id: second }),
        in: { ...absent, "at the last domain": [through(second), succeeded] },
        otherwise: conflict,
      },
      {
        with: "of a domain that is not in it",
        command: CompleteRolloutDomain.make({ domain_id: DomainId.make("third") }),
        in: absent,
        otherwise: conflict,
      },
    ],
  })

  const known = (...events: ReadonlyArray<RolloutEvent>): RolloutContext =>
    events.reduce(Rollout.evolve, Rollout.initialState).context

  it("has its image, domains, position and present replacement", () =>
    assert.deepEqual(
      known(
        ...states["one is replaced"],
        started(canary, other),
        completed(canary, other),
        through(canary),
        started(second),
      ),
      { ...descriptor, domain_index: 1, replacement: pair, replaced_workers: 2, reason: null },
    ))
  it("has the reason of its halt, and no further replacements", () =>
    assert.deepEqual(known(...states.halted), {
      ...descriptor,
      domain_index: 0,
      replacement: null,
      replaced_workers: 0,
      reason,
    }))
  it("of one domain ends with it", () => {
    const one = { image: "image-2", domain_ids: [canary] }
    given(Rollout)(RolloutCreated.make(one))
      .when(CompleteRolloutDomain.make({ domain_id: canary }))
      .thenEvents(through(canary), succeeded)
  })
  it("does not succeed before its last domain is complete", () =>
    assert.isFalse(
      states["at the last domain"]
        .reduce(Rollout.evolve, Rollout.initialState)
        .can(RolloutSucceeded.make({})),
    ))
  it("names its present replacement and domain", () => {
    const detail = (history: ReadonlyArray<RolloutEvent>) => {
      const state = history.reduce(Rollout.evolve, Rollout.initialState)
      const refused = Rollout.decide(state, CompleteRolloutDomain.make({ domain_id: second }))
      assert(Result.isFailure(refused))
      return refused.failure.detail
    }
    assert.equal(detail(states["replacing at the canary"]), "Worker new-1 is replacing old-1.")
    assert.equal(detail(states["at the canary"]), "The rollout is at domain canary.")
    assert.equal(detail(states.halted), "The rollout is halted and rejects CompleteRolloutDomain.")
  })

  it("reaches exactly the documented states", () => {
    const events = [
      created,
      started(canary),
      completed(canary),
      halted(canary),
      through(canary),
      through(second),
      succeeded,
    ]
    const met = new Set(
      [...histories(machine, events, 5)].map(({ state }) =>
        state.matches("running") ? "running" : state.value,
      ),
    )
    assert.deepEqual(met, new Set(["running", "succeeded", "halted"]))
  })

  it("fits in a snapshot with the maximum of domains and every field at its longest", () => {
    const domain_ids = Array.from({ length: rollout_domains_max }, (_, i) =>
      DomainId.make(`${i}`.padEnd(64, "d")),
    )
    const replacement = {
      ...pairOf("o".repeat(64), "n".repeat(64)),
      domain_id: domain_ids[0] ?? canary,
    }
    assertStorable(Rollout, [
      RolloutCreated.make({ image: longestName(), domain_ids }),
      ReplacementStarted.make(replacement),
      RolloutHalted.make({ ...replacement, reason: longest(1024) }),
    ])
  })
})
