import { assert, describe, it } from "@effect/vitest"
import { Schema } from "effect"
import { JobOrder, job_order_bytes_max } from "#schemas/share-protection/job-order.ts"
import {
  backupOrder,
  enrollmentOrder,
  largestOrders,
  orders,
  restoreOrder,
  retentionOrder,
} from "../../world/share-protection/order-samples.ts"

const Json = Schema.fromJsonString(JobOrder)
const encode = Schema.encodeSync(Json)
const decode = Schema.decodeUnknownSync(Json)
const isOrder = Schema.is(JobOrder)

describe("a job's order", () => {
  for (const order of [...orders, ...largestOrders]) {
    it(`of type ${order.job_type} survives the bus unchanged (${encode(order).length})`, () => {
      assert.deepEqual(decode(encode(order)), order)
    })
  }

  it("stays below its size limit for any input of tenants", () => {
    for (const order of largestOrders) {
      assert.isBelow(Buffer.byteLength(encode(order)), job_order_bytes_max / 2)
    }
  })

  it("cannot exceed the size limit", () => {
    const { forget } = { ...retentionOrder, ...largestOrders[2] }
    assert.isFalse(isOrder({ ...retentionOrder, forget: [...forget, ...forget] }))
    const exclude_patterns = ["p".repeat(4093)]
    assert.isFalse(isOrder({ ...backupOrder, exclude_patterns }))
  })

  it("has the fields that its type needs", () => {
    for (const [order, field] of [
      [backupOrder, "share_id"],
      [backupOrder, "repository_password_ref"],
      [restoreOrder, "engine_snapshot_id"],
      [retentionOrder, "forget"],
      [enrollmentOrder, "target"],
    ] as const) {
      const without = Object.fromEntries(Object.entries(order).filter(([name]) => name !== field))
      assert.isTrue(isOrder(order))
      assert.isFalse(isOrder(without), `${order.job_type} without ${field}`)
    }
  })

  it("refers to secrets by href, and contains none", () => {
    const { target } = enrollmentOrder
    for (const access_key of ["AKIAIOSFODNN7EXAMPLE", "", "https://vault/v1/secrets/x"]) {
      const vault_secret_map = { ...target.vault_secret_map, access_key }
      assert.isFalse(isOrder({ ...enrollmentOrder, target: { ...target, vault_secret_map } }))
    }
    assert.isFalse(isOrder({ ...backupOrder, repository_password_ref: "correct horse" }))
  })

  it("restores only inside the share", () => {
    for (const sub_path of ["a", "/a/../../b", "", "/a\u0000b"]) {
      assert.isFalse(isOrder({ ...restoreOrder, sub_path }))
    }
    for (const sub_path of ["/", "/a/b.txt", null]) {
      assert.isTrue(isOrder({ ...restoreOrder, sub_path }))
    }
  })
})
