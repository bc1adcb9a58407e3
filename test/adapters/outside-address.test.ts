/** SSRF: addresses of this machine and its network are rejected under any name. */
import { assert, describe, it } from "vitest"
import { addressRule, guardedLookup, type Resolve } from "#adapters/outside/address.ts"

const isAllowed = addressRule([])

const refused = [
  "127.0.0.1",
  "127.255.255.254",
  "0.0.0.0",
  "10.1.2.3",
  "172.16.0.1",
  "172.31.255.255",
  "192.168.1.1",
  "169.254.169.254",
  "169.254.0.1",
  "100.64.0.1",
  "100.127.255.255",
  "192.0.0.1",
  "192.0.2.5",
  "198.18.0.1",
  "198.51.100.1",
  "203.0.113.9",
  "224.0.0.1",
  "240.0.0.1",
  "255.255.255.255",
  "192.88.99.1",
  "168.63.129.16",
  "::1",
  "::",
  "fe80::1",
  "fe80::1%eth0",
  "fc00::1",
  "fd00:ec2::254",
  "ff02::1",
  "::ffff:127.0.0.1",
  "::ffff:7f00:1",
  "::ffff:169.254.169.254",
  "64:ff9b::a00:1",
  "::127.0.0.1",
  "2002:7f00:1::",
  "2001:0:53aa::1",
  "2001:db8::1",
  "3fff::1",
  "fec0::1",
  "",
  "localhost",
  "example.com",
  "1",
  "0x7f.1",
  "127.1",
]
const allowed = [
  "1.1.1.1",
  "8.8.8.8",
  "172.15.255.255",
  "172.32.0.1",
  "192.167.1.1",
  "169.253.1.1",
  "100.63.255.255",
  "100.128.0.0",
  "11.0.0.1",
  "223.255.255.255",
  "2606:4700::1111",
  "2a00:1450::1",
  "::ffff:8.8.8.8",
  "64:ff9b::808:808",
]

describe("which addresses are reached for a tenant", () => {
  for (const address of refused) {
    it(`not ${address || "none"}`, () => assert.isFalse(isAllowed(address)))
  }
  for (const address of allowed) {
    it(`${address}`, () => assert.isTrue(isAllowed(address)))
  }

  it("those of an excepted network too, and no others", () => {
    const rule = addressRule(["10.1.0.0/16", "fd00:1::/32"])
    for (const address of ["10.1.0.1", "::ffff:10.1.2.3", "fd00:1::5", "8.8.8.8"]) {
      assert.isTrue(rule(address), address)
    }
    for (const address of ["10.2.0.1", "fd00:2::5", "127.0.0.1", "::1"]) {
      assert.isFalse(rule(address), address)
    }
  })
})

/** A name server whose answers differ on each query. */
const rebinding = (...answers: ReadonlyArray<ReadonlyArray<string>>): Resolve => {
  let requests = 0
  return (_, answer) => {
    const found = answers[requests++] ?? []
    answer(
      null,
      found.map((address) => ({ address, family: address.includes(":") ? 6 : 4 })),
    )
  }
}

const looked = (resolve: Resolve, all: boolean) =>
  new Promise((settle) => {
    const lookup = guardedLookup(isAllowed, resolve)
    lookup("name.example", { all }, (error, found) => settle(error?.message ?? found))
  })

describe("a name", () => {
  it("is resolved once: only its allowed addresses are connected to", async () => {
    const resolve = rebinding(["8.8.8.8", "127.0.0.1"], ["10.0.0.1", "1.1.1.1"], ["127.0.0.1"])
    assert.deepEqual(await looked(resolve, true), [{ address: "8.8.8.8", family: 4 }])
    assert.equal(await looked(resolve, false), "1.1.1.1")
    const why = "name.example has no permitted address"
    assert.equal(await looked(resolve, true), why)
    assert.equal(await looked(rebinding([]), true), why)
  })
})
