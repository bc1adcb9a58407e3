import assert from "node:assert/strict"
import { describe, it } from "@effect/vitest"
import { isNonce, isProof, newNonce, proofOf } from "#adapters/blob-storage/peer/proof.ts"

const secret = "a secret of at least 32 characters"
const meeting = {
  cluster: "almanac",
  caller: "node-1",
  caller_nonce: newNonce(),
  called_nonce: newNonce(),
}

describe("a node's proof to another", () => {
  it("holds for the same secret, side and meeting", () => {
    for (const side of ["caller", "called"] as const) {
      assert.ok(isProof(secret, side, meeting, proofOf(secret, side, meeting)))
    }
  })

  it("holds for no other secret, side, cluster, node or nonce, and not again", () => {
    const proof = proofOf(secret, "caller", meeting)
    assert.ok(!isProof(`${secret}.`, "caller", meeting, proof))
    assert.ok(!isProof(secret, "called", meeting, proof))
    for (const change of [
      { cluster: "other" },
      { caller: "node-2" },
      { caller_nonce: newNonce() },
      { called_nonce: newNonce() },
    ]) {
      assert.ok(!isProof(secret, "caller", { ...meeting, ...change }, proof))
    }
    for (const wrong of ["", proof.slice(1), `${proof}A`, "é".repeat(43)]) {
      assert.ok(!isProof(secret, "caller", meeting, wrong))
    }
  })

  it("is over nonces of 32 random bytes", () => {
    const nonces = new Set(Array.from({ length: 100 }, newNonce))
    assert.equal(nonces.size, 100)
    for (const nonce of nonces) assert.ok(isNonce(nonce))
    for (const wrong of ["", "abc", `${newNonce()}=`, newNonce().replace(/./, "/")]) {
      assert.ok(!isNonce(wrong))
    }
  })
})
