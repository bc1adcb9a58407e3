/**
 * An operator's view of a working server: its metrics, its traces, and no secret in either, nor in
 * logs, events and files. One server, its worker, the engine and an S3 server, all real.
 *
 * Source: issue 10 §7; decision 0145.
 */
import { execFileSync } from "node:child_process"
import { mkdirSync, readFileSync, writeFileSync } from "node:fs"
import { dirname, join } from "node:path"
import { afterAll, assert, beforeAll, expect, it } from "vitest"
import { parse } from "yaml"
import { settings_by_path } from "#schemas/settings.ts"
import { pathOf, startCollector } from "../../observability/collector.ts"
import { badNames, type Family, parsed } from "../../observability/exposition.ts"
import { metricsOf, selectorsOf } from "../../observability/expression.ts"
import { isMarked, mark, markedFiles, markedLines } from "../../observability/marks.ts"
import { describeWithRadosgw, startRadosgw } from "../../world/programs/radosgw.ts"
import { type Client, connect } from "../../world/server/client.ts"
import { startNats } from "../../world/server/outside-nats.ts"
import {
  cleanUp,
  newFolder,
  outputOf,
  type Server,
  startServer,
  until,
} from "../../world/server/server.ts"
import {
  enroll,
  shareFolder,
  step_ms_max,
  type Tenant,
  tenantOf,
} from "../../world/server/share-tenant.ts"

const page = "docs/observability.md"
const begin = "<!-- From here on made from a server's answer:"
const end = "<!-- Up to here. -->"
const rules_file = "deploy/prometheus/alerts.yml"
const dashboard_file = "deploy/grafana/almanac.json"

/** An external trace that a request refers to. */
const trace_id = "4bf92f3577b34da6a3ce929d0e0e4736"
const parent_id = "00f067aa0ba902b7"

/** Every secret setting that is a plain string, with a marker as its value. */
const secrets: Record<string, string> = {
  ...Object.fromEntries(
    [...settings_by_path]
      .filter(([, { form }]) => form === "secret")
      .map(([path]) => [path, mark(path.replaceAll(".", "-"))]),
  ),
}

const configOf = (nats_url: string) => {
  // Other values that these settings require.
  const sections = new Map([["nats", ['user = "almanac"', `url = "${nats_url}"`]]])
  for (const [path, secret] of Object.entries(secrets)) {
    const dot = path.lastIndexOf(".")
    const section = path.slice(0, dot)
    sections.set(section, [
      ...(sections.get(section) ?? []),
      `${path.slice(dot + 1)} = "${secret}"`,
    ])
  }
  const tables = [...sections].map(([section, lines]) => `[${section}]\n${lines.join("\n")}\n`)
  const token = `[[auth.tokens]]\nname = "marked"\ntoken = "${marked_token}"\nroles = ["member"]\n`
  return `${tables.join("\n")}\n${token}project_id = "0193f5a07c1e7d3a9b542f6f0c1d8e77"\n`
}
const marked_token = mark("token")

/** Requests of a client that puts secrets in the wrong places. */
const careless = async (client: Client, server: Server) => {
  const json = { "content-type": "application/json" }
  const asks = [
    ["GET", `/v1/targets?token=${mark("query")}`, { headers: {} }],
    ["GET", "/v1/targets", { headers: { authorization: `Bearer ${mark("bearer")}` } }],
    ["GET", "/v1/targets", { headers: { "x-auth-token": mark("x-auth") } }],
    ["GET", "/v1/targets", { headers: { cookie: `session=${mark("cookie")}` } }],
    ["GET", "/v1/targets", { headers: { authorization: `Basic ${mark("basic")}` } }],
    ["GET", "/v1/cluster/state", { headers: { authorization: `Bearer ${mark("blob")}` } }],
    ["POST", "/v1/targets", { headers: json, body: JSON.stringify({ secret_key: mark("body") }) }],
    ["POST", "/v1/targets", { headers: json, body: `{"access_key": "${mark("broken")}` }],
    [
      "POST",
      "/v1/webhooks",
      {
        headers: json,
        body: JSON.stringify({ url: `https://u:${mark("userinfo")}@example.org/` }),
      },
    ],
    [
      "POST",
      "/v1/targets",
      {
        headers: json,
        body: JSON.stringify({
          name: "a",
          bucket: "b",
          endpoint: `http://u:${mark("endpoint")}@127.0.0.1:1`,
          vault_secret_map: {
            access_key: `http://u:${mark("href")}@127.0.0.1:1/v1/secrets/${mark("path")}`,
            secret_key: `http://127.0.0.1:1/v1/secrets/a?token=${mark("href-query")}`,
          },
        }),
      },
    ],
  ] as const
  for (const [method, path, init] of asks) {
    const answer = await client.ask(method, path, init)
    // The response may contain the secret, because only its sender receives it.
    assert.isBelow(answer.status, 500, `${method} ${path}`)
  }
  const operator = connect(server.url, server.credentials.admin.token)
  const kept = JSON.stringify({
    project_id: server.credentials.tenant.project_id,
    payload: mark("vault"),
  })
  const put = await operator.ask("POST", "/v1/admin/secrets", { headers: json, body: kept })
  assert.equal(put.status, 200)
  operator.close()
  const own = connect(server.url, marked_token)
  assert.equal((await own.ask("GET", "/v1/targets")).status, 200)
  own.close()
}

/** Matches the formatter's output: all cells of a column have the same width. */
const tableOf = (families: Iterable<Family>) => {
  const rows = [...families]
    .toSorted((one, other) => (one.name < other.name ? -1 : 1))
    .map(({ name, type, help }) => [`\`${name}\``, type, help])
  const head = ["metric", "type", "meaning"]
  const widths = head.map((_, column) =>
    Math.max(...[head, ...rows].map((row) => row[column]?.length ?? 0)),
  )
  const rule = widths.map((width) => "-".repeat(width))
  return [head, rule, ...rows]
    .map((row) => `| ${row.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join(" | ")} |`)
    .join("\n")
}

interface Rule {
  readonly alert: string
  readonly expr: string
  readonly labels: { readonly severity: string }
  readonly annotations: { readonly summary: string; readonly runbook: string }
}

const rules = (): ReadonlyArray<Rule> =>
  parse(readFileSync(rules_file, "utf8")).groups.flatMap(
    (group: { readonly rules: ReadonlyArray<Rule> }) => group.rules,
  )

interface Panel {
  readonly id: number
  readonly title: string
  readonly targets?: ReadonlyArray<{ readonly expr: string }>
}

describeWithRadosgw("a server that is watched", () => {
  let s3: Awaited<ReturnType<typeof startRadosgw>>
  let collector: Awaited<ReturnType<typeof startCollector>>
  let nats: Awaited<ReturnType<typeof startNats>>
  let server: Server
  let tenant: Tenant
  let config: string
  let families: ReadonlyMap<string, Family>
  let metrics = ""

  const read = async () => {
    const operator = connect(server.url, server.credentials.admin.token)
    const answer = await operator.ask("GET", "/metrics")
    operator.close()
    assert.equal(answer.status, 200)
    return answer.body.toString()
  }
  const known = (name: string) => {
    const family = families.get(name)
    assert.isDefined(family, `there is no metric ${name}`)
    return family
  }

  beforeAll(async () => {
    s3 = await startRadosgw()
    collector = await startCollector()
    const folder = newFolder()
    config = join(folder, "marked.toml")
    const bus = join(folder, "bus")
    mkdirSync(bus)
    const login = `user = "almanac", password = "${secrets["nats.password"]}"`
    writeFileSync(join(folder, "nats.conf"), `authorization { ${login} }\n`)
    nats = await startNats(bus, "-1", join(folder, "nats.conf"))
    writeFileSync(config, configOf(nats.url), { mode: 0o600 })
    server = await startServer(join(folder, "data"), {
      ALMANAC_CONFIG: config,
      ALMANAC_LOG__LEVEL: "debug",
      ALMANAC_TELEMETRY__OTLP_URL: collector.url,
    })
    tenant = tenantOf(server)
    const target_id = await enroll(server, tenant, await s3.newBucket())
    const { share_id } = server.credentials.tenant
    mkdirSync(join(shareFolder(server, tenant, share_id), "deep"), { recursive: true })
    const client = connect(server.url, tenant.token)
    const headers = {
      "content-type": "application/json",
      traceparent: `00-${trace_id}-${parent_id}-01`,
    }
    const body = JSON.stringify({ share_id, target_id })
    const made = await client.ask("POST", "/v1/backups", { headers, body })
    assert.equal(made.status, 202, made.body.toString())
    await tenant.available(`/v1/backups/${JSON.parse(made.body.toString()).backup.id}`)
    await careless(client, server)
    // Alerts refer to metrics of these probes.
    for (const path of ["/livez", "/readyz"]) await client.ask("GET", path)
    await read()
    client.close()
    metrics = await until("all parts of the metrics", step_ms_max, async () => {
      const text = await read()
      return !/almanac_collector_up\{.*\} 0/.test(text) && text.includes("_log_bytes ") && text
    })
    families = parsed(metrics)
  }, 3 * step_ms_max)

  afterAll(async () => {
    tenant?.close()
    collector?.close()
    await nats?.stop()
    await cleanUp()
    await s3?.close()
  }, step_ms_max)

  it("exposes its metrics by the rules of Prometheus", () => {
    expect(badNames(families.values())).toEqual([])
    expect(known("almanac_backups").samples).toContainEqual({
      name: "almanac_backups",
      labels: { state: "available" },
      value: 1,
    })
    const [failed] = known("almanac_rollouts_failed_total").samples
    expect(failed?.value).toBe(0)
    const done = known("almanac_commands_total").samples.filter(
      ({ labels }) => labels.aggregate === "share-protection.backup" && labels.outcome === "done",
    )
    expect(done[0]?.value).toBeGreaterThan(1)
    expect(known("almanac_log_commits_total").samples[0]?.value).toBeGreaterThan(10)
    expect(known("almanac_shares_unprotected").samples[0]?.value).toBeGreaterThan(0)
    expect(known("almanac_build_info").samples).toHaveLength(1)
  })

  it("has no label whose values grow with what is stored or asked", () => {
    const bounded = new Set([
      "method",
      "route",
      "status",
      "le",
      "aggregate",
      "outcome",
      "reason",
      "lease",
      "read_model",
      "state",
      "service",
      "spool",
      "stream",
      "collector",
      "version",
      "node",
      "acknowledged",
    ])
    // Users choose these values; the number of exported values is limited (decision 0187).
    const chosen = new Set(["webhook", "consumer"])
    for (const { name, samples } of families.values()) {
      for (const { labels } of samples) {
        for (const [label, value] of Object.entries(labels)) {
          if (chosen.has(label)) continue
          assert.isTrue(bounded.has(label), `${name} has the label ${label}`)
          assert.notMatch(value, /[0-9a-f]{8}-[0-9a-f]{4}|[0-9a-f]{16}/, `${name}.${label}`)
        }
      }
    }
    expect(metrics.split("\n").length).toBeLessThan(3000)
  })

  it("is documented, each metric with its meaning", async () => {
    const text = readFileSync(page, "utf8")
    const [before = "", rest = ""] = text.split(begin)
    const [mark_line = ""] = rest.split("\n")
    const after = text.split(end)[1]
    assert.isDefined(after, `${page} has lost its two marks`)
    const table = tableOf(families.values())
    const made = [before, begin, mark_line, "\n\n", table, "\n\n", end, after].join("")
    await expect(made).toMatchFileSnapshot(`../../../${page}`)
  })

  it("has alerts on what there is, each with its line in the runbook", () => {
    const lines = readFileSync(page, "utf8").split("\n")
    const titles = lines.filter((line) => line.startsWith("### ")).map((line) => line.slice(4))
    expect(titles).toEqual(rules().map(({ alert }) => alert))
    for (const { alert, expr, labels, annotations } of rules()) {
      for (const name of metricsOf(expr)) if (name !== "up") known(name)
      for (const { name, label, how, value } of selectorsOf(expr)) {
        if (name === "up" || label === "job" || label === "status") continue
        const values = known(name).samples.map(({ labels }) => labels[label])
        const wanted = how.includes("~") ? value.split("|") : [value]
        if (known(name).samples.length > 0) expect(values).toEqual(expect.arrayContaining(wanted))
      }
      assert.include(["warning", "critical"], labels.severity)
      assert.equal(annotations.runbook, `${page}#${alert.toLowerCase()}`)
      assert.match(annotations.summary, /^[A-Z{].*\.$/)
    }
  })

  it("has a dashboard of what there is", () => {
    const { panels } = JSON.parse(readFileSync(dashboard_file, "utf8")) as {
      readonly panels: ReadonlyArray<Panel>
    }
    expect(new Set(panels.map(({ id }) => id)).size).toBe(panels.length)
    const queries = panels.flatMap(({ targets = [] }) => targets.map(({ expr }) => expr))
    expect(queries.length).toBeGreaterThan(30)
    for (const expr of queries) for (const name of metricsOf(expr)) known(name)
  })

  it("records one request as one trace, with its process, its worker and the engine", async () => {
    const own = () => collector.spans.filter(({ traceId }) => traceId === trace_id)
    // Processes export spans at their own pace: waits for the last spans and all their ancestors.
    const spans = await until("the whole trace", step_ms_max, () => {
      const found = own()
      const ends = ["append", "projection share-protection", "restic backup"]
      const has_ends = ends.every((name) => found.some((span) => span.name === name))
      const is_reported = found.some(
        ({ attributes }) => attributes["almanac.command"] === "CompleteJob",
      )
      const is_whole = found.every((span) => pathOf(found, span)[0] === "POST /v1/backups")
      return has_ends && is_reported && is_whole && found
    })
    const engine = spans.find(({ name }) => name === "restic backup") ?? assert.fail("no engine")
    const [root, ...others] = spans.filter(({ parentSpanId }) => parentSpanId === parent_id)
    assert.deepEqual(others, [])
    assert.equal(root?.name, "POST /v1/backups")
    expect(root?.attributes).toMatchObject({
      "http.request.method": "POST",
      "http.route": "/v1/backups",
      "http.response.status_code": 202,
    })
    const roads = spans.map((span) => pathOf(spans, span).join(" > "))
    expect(roads).toContain("POST /v1/backups > command > append")
    expect(roads).toContain("POST /v1/backups > command > projection share-protection")
    expect(pathOf(spans, engine)).toEqual([
      "POST /v1/backups",
      "command",
      "command",
      "job backup",
      "restic backup",
    ])
    assert.equal(engine.service, "almanac-agent")
    assert.equal(root?.service, "almanac")
    // The worker's report comes from another process but belongs to the same trace.
    const reports = spans.filter(
      ({ name, attributes }) =>
        name === "command" && attributes["almanac.command"] === "CompleteJob",
    )
    for (const report of reports) assert.include(pathOf(spans, report), "job backup")
    for (const { attributes } of collector.spans) {
      for (const name of Object.keys(attributes)) {
        assert.match(name, /^(almanac\.|http\.(request\.method|route|response\.status_code)$)/)
      }
    }
  })

  it("keeps every secret out of logs, events, metrics, traces, files and arguments", async () => {
    const operator = connect(server.url, server.credentials.admin.token)
    const paths = ["/v1/admin/audit?limit=1000", "/metrics", "/readyz", "/openapi.json"]
    for (const path of paths) {
      const { status, body } = await operator.ask("GET", path)
      // On a busy machine a service may not report readiness in time.
      const is_reported = status === 200 || path === "/readyz"
      assert.isTrue(is_reported, `${path}: ${status}`)
      assert.deepEqual(markedLines(body.toString()), [], path)
    }
    operator.close()
    await until("spans of what was asked last", step_ms_max, () =>
      collector.spans.some(({ attributes }) => attributes["http.route"] === "/v1/admin/audit"),
    )
    assert.deepEqual(markedLines(collector.texts.join("\n")), [])
    const list = execFileSync("ps", ["-A", "-ww", "-o", "args"], { encoding: "utf8" })
    assert.deepEqual(markedLines(list), [])
    assert.isTrue(isMarked(readFileSync(config)), "the marks are looked for as they are written")
    await server.stop()
    await nats.stop()
    // All its output, including shutdown; the output at `debug` must not be empty.
    expect(server.printed.stderr).toMatch(/"level":"DEBUG"/)
    assert.deepEqual(markedLines(`${outputOf(server)}\n${server.printed.stderr}`), [])
    const vault = join(server.data_dir, "vault")
    const kept = join(dirname(server.data_dir), "bus")
    const files = [...markedFiles(server.data_dir), ...markedFiles(kept)].filter(
      (path) => !path.startsWith(vault),
    )
    assert.deepEqual(files, [])
  })
})
