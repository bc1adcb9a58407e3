/**
 * A node's store as one process (life) of the node uses it. Each operation takes time. After the
 * life has ended, none of its operations continues or responds.
 */
import type { NodeEngine, Staging } from "#actors/blob-storage/ports/node-engine.ts"
import type { World } from "./world.ts"

/** Maximum duration of one step of a store, in milliseconds. */
const step_ms_max = 2
/** The chance that a step takes a hundred times as long. */
const slow_chance = 0.01
const slower = 100

/** Digits of an identifier in the story. */
const story_digits = 8

export interface Life {
  readonly isUp: () => boolean
  /** The time until which the disk hangs, in milliseconds of the world. */
  readonly stalledUntil: () => number
}

/** Never resolves: for operations of a process that has died. */
export const never = () => new Promise<never>(() => {})

/**
 * Runs each operation with simulated delays, unless the life ends before. An operation may take
 * effect without a response.
 */
const withDelays = (world: World, { isUp, stalledUntil }: Life) => {
  const wait = async () => {
    const ms = world.random.next() * step_ms_max
    await world.pause(world.random.next() < slow_chance ? ms * slower : ms)
    if (stalledUntil() > world.ms()) await world.pause(stalledUntil() - world.ms())
  }
  return <Of extends ReadonlyArray<unknown>, A>(work: (...of: Of) => Promise<A>) =>
    async (...of: Of): Promise<A> => {
      if (!isUp()) return never()
      await wait()
      if (!isUp()) return never()
      const done = await work(...of).then(
        (answer) => ({ answer }),
        (refusal: unknown) => ({ refusal }),
      )
      await wait()
      if (!isUp()) return never()
      if ("answer" in done) return done.answer
      throw done.refusal
    }
}

/** A session that receives pieces: of a put, a transfer or a staging. */
interface Intake {
  readonly write: (bytes: Uint8Array) => Promise<void> | undefined
  readonly abort: () => Promise<void>
}

async function* windowsOf(life: Life, windows: () => AsyncIterableIterator<Uint8Array>) {
  for await (const window of windows()) {
    if (!life.isUp()) await never()
    yield window
  }
}

/** The store as one life of a process sees it. */
export const diskOf = (
  world: World,
  life: Life,
  engine: NodeEngine,
  note: (what: string) => void = () => undefined,
): NodeEngine => {
  const alive = withDelays(world, life)
  const intakeOf = (intake: Intake): Intake => ({
    // The port allows both a thrown refusal and a rejected promise.
    write: (bytes) => (life.isUp() ? intake.write(bytes) : never()),
    abort: () => (life.isUp() ? intake.abort() : never()),
  })
  const sealOf = ({ seal }: Pick<Staging, "seal">) =>
    alive(async () => {
      const staged = await seal()
      return { ...staged, windows: () => windowsOf(life, staged.windows) }
    })
  return {
    put: alive(engine.put),
    upload: (order, size) => {
      const upload = engine.upload(order, size)
      return { ...intakeOf(upload), finish: alive(upload.finish), seal: sealOf(upload) }
    },
    get: alive(async (id, range, at) => {
      const { meta, data, windows } = await engine.get(id, range, at)
      return { meta, data, windows: () => windowsOf(life, windows) }
    }),
    read: alive(async (id, range, at) => {
      const { copy, meta, data, windows } = await engine.read(id, range, at)
      return { copy, meta, data, windows: () => windowsOf(life, windows) }
    }),
    receive: (order, bytes) => {
      const receiving = engine.receive(order, bytes)
      const finish = async (at: bigint) => {
        const received = await receiving.finish(at)
        const { id, shard } = order
        const what = shard === undefined ? "" : `, shard ${shard.index},`
        if (received.created) note(`takes ${id.slice(0, story_digits)}${what} in`)
        return received
      }
      return { ...intakeOf(receiving), finish: alive(finish) }
    },
    stage: (size) => {
      const staging = engine.stage(size)
      return { ...intakeOf(staging), seal: sealOf(staging) }
    },
    stat: alive(engine.stat),
    delete: alive(engine.delete),
    tombstone: alive(engine.tombstone),
    list: alive(engine.list),
    usage: alive(engine.usage),
    scan: alive(engine.scan),
    acknowledge: alive(engine.acknowledge),
    close: alive(engine.close),
    copiesOf: alive(engine.copiesOf),
    copies: alive(engine.copies),
    renew: alive(engine.renew),
    release: alive(async (id, stored_at, at) => {
      const is_gone = await engine.release(id, stored_at, at)
      if (is_gone) note(`lets ${id.slice(0, story_digits)} go`)
      return is_gone
    }),
    deleteClusterWide: alive(engine.deleteClusterWide),
  }
}
