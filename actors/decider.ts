/**
 * A decider that is defined by a statechart.
 *
 * The XState machine takes events, never commands: it implements `evolve`. `decide` proposes events
 * for a command and checks that the machine has transitions for them. So each transition is written
 * once, in the chart. XState's types are deferred if they depend on a machine; all casts that this
 * requires are in this file, so that no aggregate needs any.
 */
import { Result, type Schema } from "effect"
import {
  type AnyActorScope,
  type AnyMachineSnapshot,
  type AnyStateMachine,
  type ContextFrom,
  createActor,
  type EventFromLogic,
  initialTransition,
  type SnapshotFrom,
  type StateValue,
} from "xstate"
import type { Snapshot } from "#events/log.ts"
import type { Message } from "#schemas/message.ts"

/** A command that an aggregate schedules for itself. */
export interface Timer<Command> {
  /** Names the timer within the aggregate. */
  readonly name: string
  /** RFC 3339 in UTC. */
  readonly due: string
  readonly command: Command
}

// Methods are bivariant, so that every decider is also an `AnyDecider`: callers that hold many
// kinds (the command host, the timer) pair each state and command with its own decider.
export interface Decider<out Command, out Event, out State, out Rejection> {
  /** `<service>.<aggregate>`: the head of each stream's name. */
  readonly name: string
  readonly command: Schema.ConstraintCodec<Command, unknown>
  readonly event: Schema.ConstraintCodec<Event, unknown>
  readonly rejection: Schema.ConstraintCodec<Rejection, unknown>
  readonly initialState: State
  evolve(state: State, event: Event): State
  decide(state: State, command: Command): Result.Result<ReadonlyArray<Event>, Rejection>
  /** The state after these events, in order. */
  after(state: State, events: ReadonlyArray<Event>): State
  timers(state: State): ReadonlyArray<Timer<Command>>
  save(state: State): Snapshot
  /** The state in a snapshot; undefined if it must be rebuilt from the history. */
  restore(snapshot: Snapshot): State | undefined
}

/** A decider of unknown commands. */
export type AnyDecider<Rejection = unknown> = Decider<unknown, Message, unknown, Rejection>

type State<Machine extends AnyStateMachine> = SnapshotFrom<Machine> & AnyMachineSnapshot

// XState's SnapshotFrom is a deferred type; these three functions read its fields.
const can = (state: AnyMachineSnapshot, event: Message) => state.can(event)
const context = (state: AnyMachineSnapshot) => state.context
const value = (state: AnyMachineSnapshot): unknown => state.value

/** The events that each command proposes, in order. */
type Proposals<Command extends Message, Event, Context, Snapshot> = {
  readonly [Type in Command["type"]]: (
    command: Extract<Command, { readonly type: Type }>,
    context: Context,
    state: Snapshot,
  ) => ReadonlyArray<Event>
}

/**
 * Computes the context after several events that do not change the chart's state, with the same
 * functions as its guards and actions. Undefined: the chart must process each event.
 */
type FoldContext<Context, Event> = (
  context: Context,
  events: ReadonlyArray<Event>,
) => Context | undefined

/**
 * Makes a decider of a chart.
 *
 * `version` must increase when the shape of a saved context changes. `upcast` converts an older
 * snapshot; if it returns undefined, the history is folded instead. `foldContext` is for hundreds
 * of events at once, because a transition costs more than its actions. `evolve` throws if the chart
 * has no such transition: the log is corrupt.
 */
export const decider = <Command extends Message, Machine extends AnyStateMachine, Rejection>({
  machine,
  version,
  command,
  event,
  rejection,
  propose,
  reject,
  timers = () => [],
  upcast = () => undefined,
  foldContext = () => undefined,
}: {
  readonly machine: Machine
  readonly version: number
  readonly command: Schema.ConstraintCodec<Command, unknown>
  readonly event: Schema.ConstraintCodec<EventFromLogic<Machine>, unknown>
  readonly rejection: Schema.ConstraintCodec<Rejection, unknown>
  readonly propose: Proposals<
    Command,
    EventFromLogic<Machine>,
    ContextFrom<Machine>,
    SnapshotFrom<Machine>
  >
  readonly reject: (state: SnapshotFrom<Machine>, command: Command) => Rejection
  readonly timers?: (state: SnapshotFrom<Machine>) => ReadonlyArray<Timer<Command>>
  readonly upcast?: (snapshot: Snapshot) => Snapshot | undefined
  readonly foldContext?: FoldContext<ContextFrom<Machine>, EventFromLogic<Machine>>
}): Decider<Command, EventFromLogic<Machine>, State<Machine>, Rejection> => {
  type Event = EventFromLogic<Machine>
  const [initialState] = initialTransition(machine as AnyStateMachine) as [State<Machine>, unknown]
  const step = stepOf(machine)
  const stateAfter = foldOf(machine, step, foldContext)

  const evolve = (state: State<Machine>, event: Event) => {
    const next = step(state, event)
    if (next === undefined) throw new Error(`${machine.id}: ${event.type} cannot happen here`)
    return next
  }

  // Caches the state that `decide` computed, so that `after` need not compute it again.
  const tried = new WeakMap<ReadonlyArray<Event>, { from: State<Machine>; to: State<Machine> }>()

  const decide = (state: State<Machine>, command: Command) => {
    const proposed = propose[command.type as Command["type"]]
    const events = proposed(command as never, context(state), state)
    const to = stateAfter(state, events)
    if (to === undefined) return Result.fail(reject(state, command))
    tried.set(events, { from: state, to })
    return Result.succeed(events)
  }

  const after = (state: State<Machine>, events: ReadonlyArray<Event>) => {
    const known = tried.get(events)
    return known?.from === state ? known.to : events.reduce(evolve, state)
  }

  return {
    name: machine.id,
    command,
    event,
    rejection,
    initialState,
    decide,
    evolve,
    after,
    timers,
    ...snapshots(machine, version, upcast),
  }
}

/** The state after an event; undefined if the chart has no such transition. */
const stepOf = <Machine extends AnyStateMachine>(machine: Machine) => {
  const scope = inertScope(machine)
  return (state: State<Machine>, event: EventFromLogic<Machine>) => {
    const next = machine.transition(state, event, scope) as State<Machine>
    // A changed state means that the event was accepted. `can` first would run guards twice.
    return next !== state || can(state, event) ? next : undefined
  }
}

type Step<Machine extends AnyStateMachine> = ReturnType<typeof stepOf<Machine>>

/** The state after several events; undefined if the chart has no transition for one of them. */
const foldOf =
  <Machine extends AnyStateMachine>(
    machine: Machine,
    step: Step<Machine>,
    foldContext: FoldContext<ContextFrom<Machine>, EventFromLogic<Machine>>,
  ) =>
  (state: State<Machine>, events: ReadonlyArray<EventFromLogic<Machine>>) => {
    const after = events.length > 1 ? foldContext(context(state), events) : undefined
    if (after !== undefined) return resolved(machine, value(state), after)
    let to = state
    for (const event of events) {
      const next = step(to, event)
      if (next === undefined) return undefined
      to = next
    }
    return to
  }

/**
 * The scope for a chart's transitions: an actor that never starts and runs no actions.
 *
 * XState's own `transition` creates one per event, which costs more than the transition itself.
 * Our charts neither spawn nor invoke, so the scope stays empty and can be shared.
 */
const inertScope = (machine: AnyStateMachine): AnyActorScope => {
  const self = createActor(machine)
  const nothing = () => {}
  return {
    self,
    system: self.system,
    id: "",
    sessionId: "",
    logger: nothing,
    defer: nothing,
    emit: nothing,
    stopChild: nothing,
    actionExecutor: nothing,
  }
}

/** The state of the machine with this value and context. */
const resolved = <Machine extends AnyStateMachine>(
  machine: Machine,
  value: unknown,
  context: ContextFrom<Machine>,
) => machine.resolveState({ value: value as StateValue, context }) as State<Machine>

/** Converts a machine's states to the snapshots in commits, and back. */
const snapshots = <Machine extends AnyStateMachine>(
  machine: Machine,
  version: number,
  upcast: (snapshot: Snapshot) => Snapshot | undefined,
) => ({
  save: (state: State<Machine>): Snapshot => ({
    machine: version,
    value: value(state),
    context: context(state),
  }),
  restore: (snapshot: Snapshot) => {
    const current = snapshot.machine === version ? snapshot : upcast(snapshot)
    if (current === undefined) return undefined
    return resolved(machine, current.value, current.context as ContextFrom<Machine>)
  },
})
