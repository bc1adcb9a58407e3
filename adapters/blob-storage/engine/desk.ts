/**
 * Where the threads that answer requests have their questions answered: by the engine, on the
 * process's own thread. What a thread leaves behind when it ends is ended with it.
 *
 * Source: decision 0168.
 */
import type { MessagePort } from "node:worker_threads"
import type {
  BlobEngine,
  BlobReading,
  BlobUpload,
  PutOrder,
} from "#actors/blob-storage/blobs/engine.ts"
import { faultOf } from "#actors/blob-storage/blobs/fault.ts"
import type { VolumeSharing } from "#volume"
import { type Asked, batches, type EngineCall, type Told } from "./message.ts"

export interface EngineDesk {
  readonly engine: Pick<BlobEngine, "put" | "upload" | "get" | "getNow" | "stat" | "delete">
  readonly sharing: VolumeSharing
  /** Nodes of the cluster that are active. */
  readonly active_nodes: () => number
  /** Told what went wrong and harms no answer. */
  readonly report: (problem: string) => void
}

interface Flow {
  readonly windows: AsyncIterableIterator<Uint8Array>
  readonly giveBack: BlobReading["giveBack"]
}

/** An upload, and its order: a message may say behind its bytes what is to be done with them. */
interface Begun {
  readonly upload: BlobUpload
  readonly order: PutOrder
}

const begun = (
  engine: EngineDesk["engine"],
  { order: said, size }: EngineCall & { ask: "upload" },
): Begun => {
  const order = { ...said }
  return { order, upload: engine.upload(order, size) }
}

const finish = ({ order, upload }: Begun, said: EngineCall & { ask: "finish" }) => {
  Object.assign(order, said.order)
  return upload.finish(said.at)
}

const no_bytes = new Uint8Array(0)

/** What one thread has begun. */
const flowsOf = () => ({
  uploads: new Map<number, Begun>(),
  readings: new Map<number, Flow>(),
  pins: new Map<number, () => void>(),
})
type Flows = ReturnType<typeof flowsOf>

/** With bytes, where they go beside the answer. */
type Answer = Promise<readonly [answer?: unknown, bytes?: Uint8Array]>

const found = <A>(flows: ReadonlyMap<number, A>, flow: number): A => {
  const one = flows.get(flow)
  if (one === undefined) throw new Error("The thread names what it did not begin.")
  return one
}

/** A copy: what the engine may read into again is not to be handed over. */
const ownOf = (bytes: Uint8Array) => new Uint8Array(bytes)

const read = async (
  { engine }: EngineDesk,
  { readings }: Flows,
  { flow, id, range, at }: EngineCall & { ask: "get" },
): Answer => {
  const is_whole = range.offset === undefined && range.length === undefined
  const at_hand = is_whole ? engine.getNow?.(id) : undefined
  const { meta, data, windows, giveBack } = at_hand ?? (await engine.get(id, range, at))
  if (data !== undefined) return [meta, ownOf(data)]
  readings.set(flow, { windows: windows(), giveBack })
  return [meta]
}

const nextWindow = async ({ readings }: Flows, flow: number): Answer => {
  const { windows, giveBack } = found(readings, flow)
  const { value, done } = await windows.next()
  if (done) return []
  const own = ownOf(value)
  giveBack?.(value)
  return [undefined, own]
}

const answer = async (
  desk: EngineDesk,
  flows: Flows,
  { call, bytes = no_bytes }: Asked,
): Answer => {
  const { engine } = desk
  const { uploads, readings } = flows
  switch (call.ask) {
    case "put":
      return [await engine.put(call.order, [bytes], call.at)]
    case "get":
      return read(desk, flows, call)
    case "stat":
      return [await engine.stat(call.id, call.scope)]
    case "delete":
      return [await engine.delete(call.id, call.origin, call.at, call.scope)]
    case "upload":
      uploads.set(call.flow, begun(engine, call))
      return []
    case "write":
      await found(uploads, call.flow).upload.write(bytes)
      return []
    case "finish":
      return [await finish(found(uploads, call.flow), call)]
    case "abort": {
      const upload = uploads.get(call.flow)
      uploads.delete(call.flow)
      await upload?.upload.abort()
      return []
    }
    case "next":
      return nextWindow(flows, call.flow)
    case "close": {
      const reading = readings.get(call.flow)
      readings.delete(call.flow)
      await reading?.windows.return?.()
      return []
    }
    case "pin": {
      const unpin = await desk.sharing.pin(call.id, call.place, call.extents)
      if (unpin) flows.pins.set(call.flow, unpin)
      return [unpin !== undefined]
    }
    case "unpin":
      flows.pins.get(call.flow)?.()
      flows.pins.delete(call.flow)
      return []
    case "active":
      return [desk.active_nodes()]
  }
}

/** Answers what comes over this port, until it closes. */
export const answerEngineCalls = (desk: EngineDesk, port: MessagePort): void => {
  const flows = flowsOf()
  const { add, carry } = batches<Told>(port)
  const serve = (asked: Asked) => {
    const { number } = asked
    answer(desk, flows, asked).then(
      ([answer, bytes]) =>
        bytes === undefined ? add({ number, answer }) : carry({ number, answer }, [bytes]),
      (cause: unknown) => add({ number, fault: faultOf(cause) }),
    )
  }
  port.on("message", (asked: ReadonlyArray<Asked>) => {
    for (const one of asked) serve(one)
  })
  port.on("close", () => {
    for (const unpin of flows.pins.values()) unpin()
    const ended = [
      ...Array.from(flows.uploads.values(), ({ upload }) => upload.abort()),
      ...Array.from(flows.readings.values(), ({ windows }) => windows.return?.()),
    ]
    for (const one of ended) one?.catch((cause: unknown) => desk.report(String(cause)))
  })
}
