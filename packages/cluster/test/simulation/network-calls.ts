/** Calls between nodes over the simulated network, with one connection per call. */

import type { CopyOrder, CopyReading } from "#actors/blob-storage/ports/node-engine.ts"
import type { CopyBytes, Fetched, Peer, Peers } from "#actors/blob-storage/ports/peers.ts"
import { copyBytes } from "#volume"
import { peerFailure } from "../../peer-failure.ts"
import { failureOf, type Guard, type Host, type Link, type Wires } from "./links.ts"
import type { World } from "./world.ts"

/** For calls without a deadline of their own. */
const ask_ms_max = 5000

/** Maximum size of a message; longer contents are split. */
const message_bytes = 65_536

type Caller = Pick<Host, "node_id" | "isUp">

const unavailable = (detail: string) => peerFailure("UNAVAILABLE", detail)

/** The error of an abandoned connection. Shared, because creating an error is slow. */
const connection_ended = unavailable("the connection has ended")

/**
 * A connection. Both ends fail, though not at the same time; a call in progress at the other end
 * completes even without a caller.
 */
const connect = (wires: Wires, caller: Caller, peer: Peer) => {
  const host = wires.hostOf(peer.node_id)
  let failure: Error | undefined
  const ended: Array<(cause: Error) => void> = []
  const fail = (cause: Error) => {
    if (failure !== undefined) return
    failure = cause
    wires.links.delete(link)
    for (const notify of ended.splice(0)) notify(cause)
  }
  const link: Link = { ends: [caller.node_id, peer.node_id], fail }
  wires.links.add(link)
  const onEnd = (listener: (cause: Error) => void) => {
    if (failure === undefined) ended.push(listener)
    else listener(failure)
  }
  /** Sends a message to the other end, or back; never resolves if the connection is lost. */
  const transmit = (is_back: boolean) =>
    new Promise<void>((resolve, reject) => {
      const [from, to] = is_back ? [peer.node_id, caller.node_id] : [caller.node_id, peer.node_id]
      onEnd(reject)
      wires.send(from, to, (sent) => {
        if (failure !== undefined) return
        if (host === undefined || !host.isUp() || wires.hostOf(peer.node_id) !== host) {
          fail(unavailable(`${peer.node_id} is down`))
        } else if (!caller.isUp()) fail(unavailable(`${caller.node_id} is down`))
        else if (sent !== "arrived") fail(unavailable(`${peer.node_id}: ${sent}`))
        else resolve()
      })
    })
  /** Runs work on the other end, and returns its result or failure. */
  const run = async <A>(work: (host: Host) => Promise<A>): Promise<A> => {
    await transmit(false)
    if (host === undefined) throw unavailable(`${peer.node_id} is offline`)
    const done = await work(host).then(
      (answer) => ({ answer }),
      (cause: unknown) => ({ refusal: failureOf(cause) }),
    )
    await transmit(true)
    if ("answer" in done) return done.answer
    throw done.refusal
  }
  return { call: run, fail, onEnd }
}

type Connection = ReturnType<typeof connect>

/** Settles like the work, within the deadline; never once the caller is down. */
const within = <A>(
  { world, caller, connection }: { world: World; caller: Caller; connection: Connection },
  deadline_ms: number,
  work: Promise<A>,
) =>
  new Promise<A>((resolve, reject) => {
    const late = peerFailure("DEADLINE_EXCEEDED", `no answer in ${deadline_ms} ms`)
    const cancel = world.after(deadline_ms, () => {
      if (caller.isUp()) reject(late)
      connection.fail(late)
    })
    work.then(
      (answer) => {
        cancel()
        if (caller.isUp()) resolve(answer)
      },
      (cause: unknown) => {
        cancel()
        if (caller.isUp()) reject(cause)
      },
    )
  })

/** Splits the bytes into messages, as copies. */
async function* messagesOf(bytes: CopyBytes) {
  for await (const part of bytes) {
    for (let at = 0; at < part.length; at += message_bytes) {
      yield part.slice(at, at + message_bytes)
    }
  }
}

type Within = <A>(work: Promise<A>) => Promise<A>

/** Sends a copy. If the connection ends early, the receiver discards what has arrived. */
const sendOver = async (
  within_time: Within,
  connection: Connection,
  order: CopyOrder,
  bytes: CopyBytes,
) => {
  const receiving = await within_time(
    connection.call(async (host) =>
      receiverOf(host).receive(order, copyBytes(order.size, order.shard)),
    ),
  )
  let is_finishing = false
  connection.onEnd(() => {
    if (!is_finishing) void receiving.abort()
  })
  for await (const message of messagesOf(bytes)) {
    await within_time(connection.call(async () => receiving.write(message)))
  }
  const finish = connection.call((host) => {
    is_finishing = true
    return receiving.finish(host.now()).catch(async (cause: unknown) => {
      await receiving.abort()
      throw cause
    })
  })
  return within_time(finish)
}

/** The bytes of a copy, one message per request. */
async function* fetchedOver(within_time: Within, connection: Connection, reading: CopyReading) {
  const messages = messagesOf(reading.data === undefined ? reading.windows() : [reading.data])
  connection.onEnd(() => void messages.return(undefined))
  try {
    for (;;) {
      const next = await within_time(connection.call(() => messages.next()))
      if (next.done) return
      yield next.value
    }
  } finally {
    connection.fail(connection_ended)
  }
}

/** The store's own operations, for a host without a guard. */
const receiverOf = ({ engine, guard, now }: Host): Guard => {
  if (guard !== undefined) return guard
  return {
    ...{ receive: engine.receive, copiesOf: engine.copiesOf, renew: engine.renew },
    rollBack: async (id, created_at) => {
      const [copy] = await engine.copiesOf([id])
      if (copy === undefined || copy.kind === "tombstone") return
      if (copy.created_at === created_at) await engine.release(id, copy.stored_at, now())
    },
  }
}

export const makeCalls = (world: World, wires: Wires, caller: Caller): Peers => {
  const dial = (peer: Peer, deadline_ms: number) => {
    const connection = connect(wires, caller, peer)
    const within_time: Within = (work) => within({ world, caller, connection }, deadline_ms, work)
    return { connection, within_time }
  }
  const ask = <A>(peer: Peer, work: (host: Host) => Promise<A>, deadline_ms = ask_ms_max) => {
    const { connection, within_time } = dial(peer, deadline_ms)
    const result = within_time(connection.call(work))
    return result.finally(() => connection.fail(connection_ended))
  }
  /** A dead process sends and receives nothing. */
  const living =
    <Of extends ReadonlyArray<unknown>, A>(call: (...of: Of) => Promise<A>) =>
    (...of: Of): Promise<A> =>
      caller.isUp() ? call(...of) : new Promise(() => {})
  return {
    send: living(async (peer, order, bytes, _reason, deadline_ms) => {
      const { connection, within_time } = dial(peer, deadline_ms)
      try {
        return await sendOver(within_time, connection, order, bytes)
      } finally {
        connection.fail(connection_ended)
      }
    }),
    rollBack: living((peer, id, created_at) =>
      ask(peer, (host) => receiverOf(host).rollBack(id, created_at)),
    ),
    renew: living((peer, id, put_at, deadline_ms) =>
      ask(peer, (host) => receiverOf(host).renew(id, put_at, host.now()), deadline_ms),
    ),
    deleteClusterWide: living((peer, id, origin, deleted_at) =>
      ask(peer, ({ engine }) => engine.deleteClusterWide(id, origin, deleted_at)),
    ),
    fetch: living(async (peer, id, range, deadline_ms): Promise<Fetched> => {
      const { connection, within_time } = dial(peer, deadline_ms)
      const read = connection.call(({ engine, now }) => engine.read(id, range, now()))
      const reading = await within_time(read).catch((cause: unknown) => {
        connection.fail(connection_ended)
        throw cause
      })
      const bytes = fetchedOver(within_time, connection, reading)
      return { copy: reading.copy, meta: reading.meta, bytes }
    }),
    copiesOf: living((peer, ids) => ask(peer, (host) => receiverOf(host).copiesOf(ids))),
    keeps: living((peer, ids, ring_version, is_read) =>
      ask(peer, async ({ keeps }) => keeps?.(ids, ring_version, is_read) ?? ids.map(() => false)),
    ),
    ringVersion: living((peer) =>
      ask(peer, async ({ ringVersion }) => {
        if (ringVersion === undefined) throw unavailable(`${peer.node_id} knows no ring`)
        return ringVersion()
      }),
    ),
    copies: living((peer, after_id, until_id, limit) =>
      ask(peer, ({ engine }) => engine.copies(after_id, until_id, limit)),
    ),
  }
}
