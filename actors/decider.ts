/**
 * A decider drawn as a chart.
 *
 * The XState machine speaks in events, never in commands: it is `evolve`. `decide` proposes events
 * for a command and asks the machine whether they can happen. So each transition is written once,
 * in the chart. XState's types are deferred where they depend on a machine, so each cast that this
 * takes is here, and no aggregate has any.
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

/** A command that the aggregate wants sent to itself at a time, though nobody asks. */
export interface Timer<Command> {
  /** Names the timer within the aggregate. */
  readonly name: string
  /** RFC 3339 in UTC. */
  readonly due: string
  readonly command: Command
}

// Methods, so that a decider of some command is a decider of unknown ones: whoever holds many
// kinds (the host of commands, the timer) pairs each state and command with its own decider.
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
  /** The state that a snapshot holds; undefined when only the history can tell. */
  restore(snapshot: Snapshot): State | undefined
}

/** A decider of whatever commands. */
export type AnyDecider<Rejection = unknown> = Decider<unknown, Message, unknown, Rejection>

type State<Machine extends AnyStateMachine> = SnapshotFrom<Machine> & AnyMachineSnapshot

// XState's SnapshotFrom is a deferred type: these three read it as what it is.
const can = (state: AnyMachineSnapshot, event: Message) => state.can(event)
const context = (state: AnyMachineSnapshot) => state.context
const value = (state: AnyMachineSnapshot): unknown => state.value

/** What each command would make happen, in the order it would happen. */
type Proposals<Command extends Message, Event, Context, Snapshot> = {
  readonly [Type in Command["type"]]: (
    command: Extract<Command, { readonly type: Type }>,
    context: Context,
    state: Snapshot,
  ) => ReadonlyArray<Event>
}

/**
 * The context after events that all leave the chart in the state that it is in, made of the same
 * functions as its guards and actions; undefined where the chart is to be asked for each of them.
 */
type Course<Context, Event> = (
  context: Context,
  events: ReadonlyArray<Event>,
) => Context | undefined

/**
 * Reads a chart as a decider.
 *
 * `version` rises when a saved context changes its shape; `upcast` reads an older one, or answers
 * undefined, and then the history is folded. `course` is for hundreds of events at once, since a
 * chart's transition costs more than what it does. `evolve` throws when the chart has no such
 * transition: the log is corrupt.
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
  course = () => undefined,
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
  readonly course?: Course<ContextFrom<Machine>, EventFromLogic<Machine>>
}): Decider<Command, EventFromLogic<Machine>, State<Machine>, Rejection> => {
  type Event = EventFromLogic<Machine>
  const [initialState] = initialTransition(machine as AnyStateMachine) as [State<Machine>, unknown]
  const step = stepOf(machine)
  const stateAfter = walkOf(machine, step, course)

  const evolve = (state: State<Machine>, event: Event) => {
    const next = step(state, event)
    if (next === undefined) throw new Error(`${machine.id}: ${event.type} cannot happen here`)
    return next
  }

  // What a decision has tried need not be tried again to know the state after it.
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

/** The state after an event; undefined where the chart has no such transition. */
const stepOf = <Machine extends AnyStateMachine>(machine: Machine) => {
  const scope = inertScope(machine)
  return (state: State<Machine>, event: EventFromLogic<Machine>) => {
    const next = machine.transition(state, event, scope) as State<Machine>
    // Where something has changed it was taken: asked before, a chart would run its guards twice.
    return next !== state || can(state, event) ? next : undefined
  }
}

type Step<Machine extends AnyStateMachine> = ReturnType<typeof stepOf<Machine>>

/** The state after several events; undefined where the chart has no transition for one of them. */
const walkOf =
  <Machine extends AnyStateMachine>(
    machine: Machine,
    step: Step<Machine>,
    course: Course<ContextFrom<Machine>, EventFromLogic<Machine>>,
  ) =>
  (state: State<Machine>, events: ReadonlyArray<EventFromLogic<Machine>>) => {
    const after = events.length > 1 ? course(context(state), events) : undefined
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
 * What a chart's transitions run in: an actor that is never started, and runs no action.
 *
 * XState's own `transition` makes one for each event, which costs more than the transition does.
 * One is enough, since our charts neither spawn nor invoke: nothing is ever kept in it.
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

/** A state of the machine by its value and its context. */
const resolved = <Machine extends AnyStateMachine>(
  machine: Machine,
  value: unknown,
  context: ContextFrom<Machine>,
) => machine.resolveState({ value: value as StateValue, context }) as State<Machine>

/** How a machine's states are written into commits, and read from them. */
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
