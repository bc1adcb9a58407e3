import { assert, describe, it } from "@effect/vitest"
import { Arbitrary, Effect, Schema } from "effect"
import { ClusterEvent } from "#events/blob-storage/cluster.ts"
import { VolumeEvent } from "#events/blob-storage/volume.ts"
import { published as publications } from "#projections/blob-storage/published.ts"
import { publishedOf } from "#projections/published-events.ts"
import { published as types } from "#schemas/blob-storage/published.ts"
import { CloudEvent } from "#schemas/cloud-event.ts"
import type { Message } from "#schemas/message.ts"

const at = "2026-11-20T12:00:00.000Z"

const tell = (stream: string, ...events: ReadonlyArray<Message>) =>
  publishedOf(publications, {
    position: 7,
    stream,
    hash: "",
    commit: {
      v: 1,
      actor: "node:n1",
      at,
      request_id: "r1",
      events,
      snapshot: { machine: 1, value: "", context: {} },
      commands: ["c1"],
      prev: "",
    },
  })

const samples = <E>(event: Schema.ConstraintCodec<E, unknown>, count: number) =>
  Effect.runSync(Arbitrary.sampleEffect(Arbitrary.schema(event), { count, seed: "published" }))

/** Events of every kind, each in its stream. */
const happenings = [
  ...samples(ClusterEvent, 300).map((event) => tell("blob-storage.cluster.almanac", event)),
  ...samples(VolumeEvent, 300).map((event) => tell("blob-storage.volume.n1", event)),
].flat()

const strict = { onExcessProperty: "error" } as const
const cursor = { after: 1, cursor: 2 }
const blob = {
  id: "00112233445566778899aabbccddeeff",
  size: 5,
  checksum: "c2hhMjU2",
  policy: "REPLICATION_POLICY_NONE",
  at: "1795205625850583649",
  actor: "alice",
  request_id: "r2",
  correlation_id: "k2",
}

describe("what blob storage publishes", () => {
  it("is every type that is listed, and no other", () => {
    const ids = new Set(happenings.map(({ event }) => event.type))
    assert.deepEqual([...ids].sort(), Object.keys(types).sort())
  })

  it("has exactly the data of its type's schema, for every event", () => {
    for (const { service, aggregate, event } of happenings) {
      const type = types[event.type as keyof typeof types]
      Schema.decodeUnknownSync(type.data, strict)(event.data)
      Schema.decodeUnknownSync(CloudEvent, strict)(JSON.parse(JSON.stringify(event)))
      assert.equal(service, "blob-storage")
      assert.equal(aggregate, type.aggregate)
      assert.equal(event.source, `/almanac/blob-storage/${aggregate}`)
    }
  })

  it("has a blob as its subject, and names who put it and when, not who recorded it", () => {
    const stored = { type: "BlobStored", ...blob, ...cursor, labels: { kind: "photo" } }
    assert.deepEqual(tell("blob-storage.volume.n1", stored), [
      {
        service: "blob-storage",
        aggregate: "blob",
        event: {
          specversion: "1.0",
          id: "7.0",
          source: "/almanac/blob-storage/blob",
          type: "blob_stored",
          subject: blob.id,
          time: "2026-11-20T20:13:45.850Z",
          datacontenttype: "application/json",
          position: 7,
          actor: "alice",
          requestid: "r2",
          correlationid: "k2",
          data: {
            node_id: "n1",
            size: 5,
            checksum: "c2hhMjU2",
            policy: "REPLICATION_POLICY_NONE",
            labels: { kind: "photo" },
          },
        },
      },
    ])
  })

  it("has the cluster as its subject, and keeps the watchdog's fence to itself", () => {
    const offline = { type: "NodeWentOffline", node_id: "n2", fence: 9, remove_at: at }
    const [only] = tell("blob-storage.cluster.almanac", offline)
    assert.equal(only?.event.subject, "almanac")
    assert.equal(only?.event.actor, "node:n1")
    assert.equal(only?.event.requestid, "r1")
    assert.deepEqual(only?.event.data, { node_id: "n2", remove_at: at })
  })

  it("numbers the events of one commit by their place in it", () => {
    const deleted = { type: "BlobDeleted", ...blob, ...cursor }
    const ids = tell("blob-storage.volume.n1", deleted, deleted, deleted).map(
      ({ event }) => event.id,
    )
    assert.deepEqual(ids, ["7.0", "7.1", "7.2"])
  })

  it("is nothing of another service or of the machinery", () => {
    const elected = { type: "LeaderElected", holder: "n1" }
    assert.deepEqual(tell("system.election.system-publisher", elected), [])
    assert.deepEqual(tell("blob-storage.clusters.x", elected), [])
  })
})
