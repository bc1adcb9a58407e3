/** The view of the fleet manager: that of dispatch, plus domains and rollouts. */
import { Effect } from "effect"
import {
  type DispatchView,
  emptyView,
  foldDispatch,
} from "#actors/share-protection/dispatch/view.ts"
import { Domain, domainAfter } from "#actors/share-protection/domain.ts"
import { Fleet } from "#actors/share-protection/fleet.ts"
import { Rollout, rolloutAfter } from "#actors/share-protection/rollout.ts"
import { type Log, parseStream, type Recorded } from "#events/log.ts"
import type { DomainSettings } from "#schemas/share-protection/domain.ts"
import { DomainId, RolloutId } from "#schemas/share-protection/id.ts"

type RunningRollout = Effect.Success<ReturnType<typeof rolloutAfter>> & {
  readonly rollout_id: RolloutId
  readonly position: number
}

export interface FleetView extends DispatchView {
  /** The applied settings of each domain that has its own. */
  readonly domains: Map<DomainId, DomainSettings>
  /** The running rollout. */
  rollout: RunningRollout | undefined
  /** Position of the fleet's last commit; 0 before the first. */
  fleet_position: number
}

export const emptyFleetView = (): FleetView => ({
  ...emptyView(),
  domains: new Map(),
  rollout: undefined,
  fleet_position: 0,
})

export const foldFleet = Effect.fnUntraced(function* (
  log: Log["Service"],
  view: FleetView,
  recorded: Recorded,
) {
  const { stream, position } = recorded
  const { name, id } = parseStream(stream)
  if (name === Domain.name) {
    view.domains.set(DomainId.make(id), (yield* domainAfter(log, recorded)).applied)
    return
  }
  if (name === Rollout.name) {
    const rollout = yield* rolloutAfter(log, recorded)
    const rollout_id = RolloutId.make(id)
    if (rollout.state === "running") view.rollout = { ...rollout, rollout_id, position }
    else if (view.rollout?.rollout_id === rollout_id) view.rollout = undefined
    return
  }
  if (name === Fleet.name) view.fleet_position = position
  yield* foldDispatch(log, view, recorded)
})
