/**
 * Work for a server of any release, so that its log has data of each service: over HTTP and by its
 * own commands, as users do it.
 */
import assert from "node:assert/strict"
import sharp from "sharp"
import { drawLeaf } from "#trainer"
import type { FakeRegistry } from "../carrier-search/registry-fake.ts"
import { hashed } from "../world/server/blob-client.ts"
import { connect } from "../world/server/client.ts"
import type { Server } from "../world/server/server.ts"

const leaf_side = 96
const web_key = "a-key-of-the-test"

/** The required settings: the test's own registry. */
export const workSettings = ({ url }: FakeRegistry) => ({
  FMCSA_WEB_KEY: web_key,
  ALMANAC_CARRIER__REGISTRY_URL: url,
  ALMANAC_CARRIER__RATE_PER_SECOND: "0",
})

export const workPlan = {
  key: web_key,
  dockets: (mc: number) =>
    mc % 2 === 0 ? [{ mc, dot: mc, name: `HAULAGE ${mc}`, active: true, carrier_only: true }] : [],
}

/** All names include `round`, so that rounds differ. */
export const workOn = async ({ url, credentials }: Server, round: number) => {
  const blobs = connect(url, credentials.blob.token)
  try {
    for (let n = 0; n < 4; n++) {
      const bytes = Buffer.from(`blob ${n} of round ${round}`)
      const { status, body } = await blobs.ask("POST", "/v1/blobs/stream", {
        body: bytes,
        headers: { "content-type": "application/octet-stream" },
      })
      assert(status < 300, `put: ${status} ${body}`)
      if (n > 0) continue
      const { id } = hashed(bytes)
      assert((await blobs.ask("DELETE", `/v1/blobs/${id}`)).status < 300)
    }
    const search = await fetch(`${url}/api/search?start=${round * 10}&end=${round * 10 + 5}`)
    assert.equal(search.status, 200)
    const raw = { width: leaf_side, height: leaf_side, channels: 3 } as const
    const leaf = await sharp(drawLeaf(round % 3, 7_100_001, leaf_side), { raw })
      .jpeg()
      .toBuffer()
    const form = new FormData()
    form.append("file", new Blob([Uint8Array.from(leaf)], { type: "image/jpeg" }), "leaf.jpg")
    assert.equal((await fetch(`${url}/predict`, { method: "POST", body: form })).status, 200)
  } finally {
    blobs.close()
  }
}
