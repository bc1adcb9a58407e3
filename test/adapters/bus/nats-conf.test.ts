/** nats.conf in the root folder defines every name that the code refers to. */
import { readFileSync } from "node:fs"
import { assert, describe, it } from "vitest"
import {
  mirror_api,
  mirror_consumer,
  mirror_deliveries,
  natsConf,
  source_api,
  store_bytes_max,
  variables,
} from "#adapters/bus/config.ts"
import { events_stream } from "#adapters/published/stream-name.ts"
import { workerUser } from "#adapters/share-protection/worker-users.ts"
import { server_name } from "#bus"
import { WorkerId } from "#schemas/share-protection/id.ts"

const text = readFileSync("nats.conf", "utf8")

describe("nats.conf", () => {
  it("has the names and the limit that the code uses", () => {
    for (const variable of Object.values(variables)) assert.include(text, `$${variable}`)
    const reset = `CONSUMER.RESET.${events_stream}.${mirror_consumer}`
    assert.include(text, `to: "${source_api}.${reset}"`)
    assert.include(text, `to: "${mirror_api}.INFO"`)
    assert.include(text, `stream: "${mirror_deliveries}"`)
    assert.include(text, `server_name: "${server_name}"`)
    assert.include(text, `max_file_store: ${store_bytes_max / 1024 ** 3}GB`)
  })

  it("is filled in with places and users, quoted where a path needs it", () => {
    const folders = { store: '/a "b"/jetstream', ports: "/ports" }
    const plain = natsConf(folders, [])
    assert.include(plain, String.raw`store_dir: "/a \"b\"/jetstream"`)
    assert.include(plain, 'ports_file_dir: "/ports"')
    assert.include(plain, "deny: []")
    const public_key = `U${"A".repeat(55)}`
    const worker_id = WorkerId.make("worker-1")
    const whole = natsConf(folders, [workerUser({ worker_id, public_key })], ["billing"])
    assert.include(whole, `      { nkey: ${public_key}, permissions`)
    assert.include(whole, "password: $ALMANAC_NATS_SUBSCRIBER_BILLING")
    assert.match(whole, /deny: \["\$JS\.API\.CONSUMER\.CREATE\.ALMANAC_EVENTS","/)
  })
})
