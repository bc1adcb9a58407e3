/**
 * Prometheus' own tool checks the metrics of a server, the rules, and their alerts. Source: issue
 * 10 §7.
 */
import { spawnSync } from "node:child_process"
import { join } from "node:path"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { findTree, treeEnvironment, trees } from "../../launcher/trees.mjs"
import { describeAbsent } from "../world/programs/absent.ts"
import { connect } from "../world/server/client.ts"
import { cleanUp, newFolder, type Server, startServer } from "../world/server/server.ts"

const tree = findTree("prometheus")
const folder = "deploy/prometheus"
/** The tool only reads its input and starts nothing. */
const promtool_ms_max = 60_000

/** The tool's output, and whether it succeeded. */
const promtool = (args: ReadonlyArray<string>, input = "") => {
  const home = tree ?? "/"
  const { status, stdout, stderr } = spawnSync(join(home, "usr/bin/promtool"), args, {
    input,
    encoding: "utf8",
    timeout: promtool_ms_max,
    env: { ...process.env, ...treeEnvironment(home) },
  })
  return { is_content: status === 0, output: `${stdout}${stderr}` }
}

const define = () => {
  let server: Server

  beforeAll(async () => {
    server = await startServer(newFolder())
  })
  afterAll(cleanUp)

  it("has nothing to say against the metrics of a server", async () => {
    const client = connect(server.url, server.credentials.admin.token)
    const { body } = await client.ask("GET", "/metrics")
    client.close()
    expect(promtool(["check", "metrics"], body.toString())).toEqual({
      is_content: true,
      output: "",
    })
  })

  it("would say something against metrics that are none", () => {
    expect(promtool(["check", "metrics"], "a_total{b=c} 1\n").is_content).toBe(false)
  })

  it("reads the configuration and its rules", () => {
    const { is_content, output } = promtool([
      "check",
      "config",
      "--syntax-only",
      `${folder}/prometheus.yml`,
    ])
    expect(output).toMatch(/SUCCESS/)
    expect(is_content).toBe(true)
    const rules = promtool(["check", "rules", "--lint-fatal", `${folder}/alerts.yml`])
    expect(rules.output).toMatch(/SUCCESS: \d+ rules found/)
    expect(rules.is_content).toBe(true)
  })

  it("gets the alerts that each history should bring, and no others", () => {
    const { is_content, output } = promtool(["test", "rules", `${folder}/alerts.test.yml`])
    expect(output).toMatch(/SUCCESS/)
    expect(is_content).toBe(true)
  })
}

if (tree === undefined) {
  const why = `promtool is needed: ${trees.prometheus.install_command}`
  describeAbsent("promtool", "promtool", why)
} else describe("promtool", define)
