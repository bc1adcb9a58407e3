/**
 * Runs the commands of docs/guide-cluster.md against six real nodes as a new user does, and
 * compares its settings with the declared ones.
 */
import { mkdirSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { Effect } from "effect"
import { afterAll, assert, it } from "vitest"
import { readSettings } from "#adapters/settings.ts"
import { published } from "#schemas/blob-storage/published.ts"
import { settings_by_path } from "#schemas/settings.ts"
import { describeWithServer } from "../world/programs/nats.ts"
import { startCluster } from "../world/server/cluster-run.ts"
import { cleanUp, newFolder } from "../world/server/server.ts"
import { commandsIn, guideText, walk } from "./guide.ts"

const guide = guideText("guide-cluster.md")
const walk_ms_max = 180_000

afterAll(cleanUp)

describeWithServer("docs/guide-cluster.md", () => {
  it(
    "leads from six nodes to four without loss",
    async () => {
      const cluster = await startCluster(6)
      try {
        const { code, output } = await walk(newFolder(), commandsIn(guide), { DIR: cluster.dir })
        assert.equal(code, 0, output)
        assert.match(output, /"node_id":"node-3"/)
        assert.match(output, /^\{"exists":true,/m)
        assert.match(output, /^\{"deleted":true\}$/m)
        const killed = /^node-6 was killed by SIGKILL; the other nodes keep running$/m
        assert.match(cluster.output(), killed)
      } finally {
        await cluster.stop()
      }
    },
    walk_ms_max,
  )

  it("shows a configuration that a node accepts", async () => {
    const [, toml = ""] = /^```toml\n([\s\S]*?)^```$/m.exec(guide) ?? []
    const folder = newFolder()
    const etc = join(folder, "etc")
    mkdirSync(join(etc, "almanac"), { recursive: true })
    const files = [...toml.matchAll(/"\/etc\/(\S+)"/g)].map(([, name]) => join(etc, name ?? ""))
    assert.isAbove(files.length, 6)
    for (const [n, file] of files.entries()) writeFileSync(file, `${n}-`.padEnd(40, "s"))
    const config = join(folder, "almanac.toml")
    writeFileSync(config, toml.replaceAll("/etc/", `${etc}/`))
    const { settings } = await Effect.runPromise(readSettings({ config, env: {}, set: [] }))
    assert.equal(settings.cluster.node_id, "node-1")
    assert.equal(settings.auth.tokens.length, 2)
  })

  it("names existing settings and events", () => {
    const sections = ["cluster", "tls", "blob", "nats"]
    const names = [...guide.matchAll(/`(\w+)\.(\w+)`/g)].filter(([, section = ""]) =>
      sections.includes(section),
    )
    assert.isAbove(names.length, 8)
    for (const event of ["replication_shortfall_started", "node_went_offline"] as const) {
      assert.isTrue(guide.includes(`\`${event}\``) && event in published, event)
    }
    for (const [, section, name] of names) {
      assert.isTrue(settings_by_path.has(`${section}.${name}`), `${section}.${name}`)
    }
  })
})
