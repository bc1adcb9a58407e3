/**
 * Puts, gets and deletes on a cluster during faults of its nodes, and a ledger of the responses:
 * acknowledged blobs must exist, and blobs that were deleted everywhere must not.
 */
import assert from "node:assert/strict"
import { setTimeout as pause } from "node:timers/promises"
import { noise } from "../../contract/blob-storage/engine-bytes.ts"
import type { Seeded } from "../../world/seeded.ts"
import { hashed } from "../../world/server/blob-client.ts"
import { type Client, NoAnswer, responseText } from "../../world/server/client.ts"
import { countCopies, getRaw, putAs } from "../../world/server/cluster-run.ts"
import { untilActive, type World, whole_ms_max } from "../../world/server/cluster-world.ts"
import { until } from "../../world/server/server.ts"

/** Copies or shards of each policy. */
const policies = { NONE: 1, REPLICA2: 2, REPLICA3: 3, EC42: 6, EC82: 10 } as const
type Policy = keyof typeof policies
const six = ["NONE", "REPLICA2", "REPLICA3", "REPLICA3", "EC42", "EC42"] as const
const ten = [...six, "EC82", "EC82"] as const

const writers = 4
const size_max = 400_000
/** One in this many operations deletes a blob everywhere; one in this many reads one. */
const deletes_in = 8
const gets_in = 3
/** Maximum time for the load to reach the required number of puts. */
const load_ms_max = 240_000
const retry_ms = 100

/** Too few nodes for shards, shards that could not be placed, and unreachable nodes. */
const refusals: ReadonlyArray<number> = [412, 500, 503]

interface Kept {
  readonly seed: number
  readonly size: number
  readonly policy: Policy
}

export interface Ledger {
  readonly random: Seeded
  /** Acknowledged blobs, by identifier. */
  readonly kept: Map<string, Kept>
  readonly deleted: Set<string>
  /**
   * Blobs that may or may not exist: the response was lost, or a node was offline during deletion.
   */
  readonly doubtful: Set<string>
  /** Reads during faults, by whether they succeeded. */
  readonly reads: { answered: number; refused: number }
  /** Whether a deletion is certain to reach every node. */
  is_sure: boolean
  next: number
}

export const newLedger = (random: Seeded): Ledger => ({
  random,
  next: random.between(0, 1_000_000),
  reads: { answered: 0, refused: 0 },
  is_sure: true,
  kept: new Map(),
  deleted: new Set<string>(),
  doubtful: new Set<string>(),
})

const bytesOf = ({ seed, size }: Kept) =>
  Buffer.concat([Buffer.from(`${seed} `), noise(seed, size)])

/** A response, or undefined if a node stopped in the middle of it. */
const answered = async <A>(asking: Promise<A>) => {
  try {
    return await asking
  } catch (cause) {
    if (cause instanceof NoAnswer) return undefined
    throw cause
  }
}

const put = async ({ nodes }: World, ledger: Ledger, client: Client) => {
  const { random, kept, doubtful } = ledger
  const policy: Policy = random.pick(nodes.length >= policies.EC82 ? ten : six)
  const blob = { seed: ledger.next++, size: random.between(0, size_max), policy }
  const bytes = bytesOf(blob)
  const { id } = hashed(bytes)
  const answer = await answered(putAs(client, bytes, policy))
  if (answer?.status === 200) kept.set(id, blob)
  else {
    doubtful.add(id)
    assert.ok(
      answer === undefined || refusals.includes(answer.status),
      answer && responseText(answer),
    )
    await pause(retry_ms)
  }
}

const someId = ({ random, kept }: Ledger) => [...kept.keys()][random.between(0, kept.size - 1)]

/** Gets the exact blob, or a response that explains why it is unavailable now. */
const get = async (ledger: Ledger, client: Client) => {
  const id = someId(ledger)
  const blob = id === undefined ? undefined : ledger.kept.get(id)
  if (id === undefined || blob === undefined) return
  const answer = await answered(getRaw(client, id))
  const is_read = answer?.status === 200
  if (is_read) assert.ok(answer.body.equals(bytesOf(blob)), `${id} was read with other bytes`)
  ledger.reads[is_read ? "answered" : "refused"] += 1
}

const deleteEverywhere = async (ledger: Ledger, client: Client) => {
  const { kept, deleted, doubtful } = ledger
  const id = someId(ledger)
  if (id === undefined) return
  kept.delete(id)
  const was_sure = ledger.is_sure
  const answer = await answered(client.ask("DELETE", `/v1/blobs/${id}?scope=cluster`))
  if (answer?.status === 200 && was_sure && ledger.is_sure) deleted.add(id)
  else doubtful.add(id)
}

/** Runs until stopped; returns a function that waits for this many more acknowledged puts. */
export const startLoad = (world: World, ledger: Ledger) => {
  const { random, kept, deleted } = ledger
  let is_over = false
  let failed: unknown
  const work = async () => {
    while (!is_over && failed === undefined) {
      const [first, ...more] = world.up()
      if (first === undefined) throw new Error("no node is up")
      const { client } = random.pick([first, ...more])
      if (random.between(1, deletes_in) === 1) await deleteEverywhere(ledger, client)
      else if (random.between(1, gets_in) === 1) await get(ledger, client)
      else await put(world, ledger, client)
    }
  }
  const working = Array.from({ length: writers }, () =>
    work().catch((cause: unknown) => {
      failed ??= cause
    }),
  )
  const done = () => kept.size + deleted.size
  return {
    more: async (count: number) => {
      const wanted = done() + count
      await until(`${count} more puts`, load_ms_max, () => {
        if (failed !== undefined) throw failed
        return done() >= wanted
      })
    },
    stop: async () => {
      is_over = true
      await Promise.all(working)
      if (failed !== undefined) throw failed
    },
  }
}

export type Load = ReturnType<typeof startLoad>

/** Waits until each blob has its wanted number of copies, and reads all of them. */
export const checkAll = async (world: World, { random, kept, deleted }: Ledger) => {
  await untilActive(world)
  const clients = world.clients()
  for (const [id, blob] of kept) {
    const copies = policies[blob.policy]
    const message = `${id} (${blob.policy}, ${blob.size} bytes) to have ${copies} copies`
    await until(message, whole_ms_max, async () => (await countCopies(clients, id)) >= copies)
    const client = clients[random.between(0, clients.length - 1)]
    const answer = client && (await getRaw(client, id))
    assert.ok(answer?.status === 200, `${id}: ${answer && responseText(answer)}`)
    assert.ok(answer.body.equals(bytesOf(blob)), `${id} has other bytes`)
  }
  for (const id of deleted) {
    await until(`${id} to be deleted`, whole_ms_max, async () => {
      return (await countCopies(clients, id)) === 0
    })
  }
}
