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
} from "#actors/blob-storage/blob-engine.ts"
import { faultOf } from "#actors/blob-storage/blob-fault.ts"
import {
  type Asked,
  batches,
  type EngineCall,
  no_bytes,
  type Own,
  type ReadingTold,
  type Told,
} from "./engine-message.ts"
import type { VolumeSharing } from "./volume-sharing.ts"

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

/** What one thread has begun. */
const flowsOf = () => ({
  uploads: new Map<number, Begun>(),
  readings: new Map<number, Flow>(),
  pins: new Map<number, () => void>(),
})
type Flows = ReturnType<typeof flowsOf>

/** An answer; one that has bytes is still without, and these are put into it as it is posted. */
type Answered = Promise<
  readonly [answer: unknown] | readonly [answer: { bytes: Own }, bytes: Uint8Array]
>

const found = <A>(flows: ReadonlyMap<number, A>, flow: number): A => {
  const one = flows.get(flow)
  if (one === undefined) throw new Error("The thread names what it did not begin.")
  return one
}

const read = async (
  { engine }: EngineDesk,
  { readings }: Flows,
  { flow, id, range, at }: EngineCall & { ask: "get" },
): Answered => {
  const is_whole = range.offset === undefined && range.length === undefined
  const at_hand = is_whole ? engine.getNow?.(id) : undefined
  const { meta, data, windows, giveBack } = at_hand ?? (await engine.get(id, range, at))
  if (data === undefined) {
    readings.set(flow, { windows: windows(), giveBack })
  }
  const told: ReadingTold = { meta, is_whole: data !== undefined, bytes: no_bytes }
  return data === undefined ? [told] : [told, new Uint8Array(data)]
}

const nextWindow = async ({ readings }: Flows, flow: number): Answered => {
  const { windows, giveBack } = found(readings, flow)
  const { value, done } = await windows.next()
  if (done) return [undefined]
  // What the engine reads into again is not to be handed over.
  const own = new Uint8Array(value)
  giveBack?.(value)
  return [{ bytes: no_bytes }, own]
}

const answer = async (desk: EngineDesk, flows: Flows, { call }: Asked): Answered => {
  const { engine } = desk
  const { uploads, readings } = flows
  switch (call.ask) {
    case "put":
      return [await engine.put(call.order, [call.bytes], call.at)]
    case "get":
      return read(desk, flows, call)
    case "stat":
      return [await engine.stat(call.id, call.scope)]
    case "delete":
      return [await engine.delete(call.id, call.origin, call.at, call.scope)]
    case "upload":
      uploads.set(call.flow, begun(engine, call))
      return [undefined]
    case "write":
      await found(uploads, call.flow).upload.write(call.bytes)
      return [undefined]
    case "finish":
      return [await finish(found(uploads, call.flow), call)]
    case "abort": {
      const upload = uploads.get(call.flow)
      uploads.delete(call.flow)
      await upload?.upload.abort()
      return [undefined]
    }
    case "next":
      return nextWindow(flows, call.flow)
    case "close": {
      const reading = readings.get(call.flow)
      readings.delete(call.flow)
      await reading?.windows.return?.()
      return [undefined]
    }
    case "pin": {
      const unpin = await desk.sharing.pin(call.id, call.place, call.extents)
      if (unpin) flows.pins.set(call.flow, unpin)
      return [unpin !== undefined]
    }
    case "unpin":
      flows.pins.get(call.flow)?.()
      flows.pins.delete(call.flow)
      return [undefined]
    case "active":
      return [desk.active_nodes()]
  }
}

/** Answers what comes over this port, until it closes. */
export const answerEngineCalls = (desk: EngineDesk, port: MessagePort): void => {
  const flows = flowsOf()
  const tell = batches<Told>(port)
  const serve = (asked: Asked) => {
    const { number } = asked
    answer(desk, flows, asked).then(
      (answered) => {
        if (answered.length === 1) tell({ number, answer: answered[0] })
        else tell({ number, answer: answered[0] }, answered[0], [answered[1]])
      },
      (cause: unknown) => tell({ number, fault: faultOf(cause) }),
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
