/**
 * The files of deploy/ are consistent with each other and with Almanac. No container runs here;
 * deploy.services.ts starts the same processes without containers. Source: issue 10 §6; decision
 * 0144.
 */
import { execFileSync, spawnSync } from "node:child_process"
import { existsSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs"
import { createServer } from "node:http"
import { join } from "node:path"
import { Result } from "effect"
import { OpenApi } from "effect/http-api"
import { assert, describe, expect, it } from "vitest"
import { HealthApi } from "#gateway/system/apis/health.ts"
import { decodeSetting, fromText } from "#schemas/setting.ts"
import { settings_by_path } from "#schemas/settings.ts"
import { findBinary } from "../../launcher/binaries.mjs"
import { cleanUp, newFolder } from "../world/server/server.ts"
import {
  compose,
  kubernetesFiles,
  kustomization,
  type Manifest,
  manifests,
  type NetworkPolicy,
  type StatefulSet,
  settingOfVariable,
  settingsOfToml,
  textOf,
} from "./files.ts"

const port = settings_by_path.get("api.bind_port")?.initial
const routes = Object.keys(OpenApi.fromApi(HealthApi).paths)

const accepted = (path: string, raw: unknown) => {
  const setting = settings_by_path.get(path)
  assert.isDefined(setting, `${path} is no setting`)
  return Result.isSuccess(decodeSetting(path, setting, raw))
}

const acceptedText = (path: string, text: string) => {
  const setting = settings_by_path.get(path)
  assert.isDefined(setting, `${path} is no setting`)
  return Result.isSuccess(decodeSetting(path, setting, fromText(setting, text)))
}

describe("almanac.toml", () => {
  it("has settings that there are, with values that they accept", () => {
    const given = settingsOfToml(textOf("almanac.toml"))
    expect(given.length).toBeGreaterThan(8)
    for (const [path, value] of given) assert.isTrue(accepted(path, value), path)
  })

  it("names each secret by its file", () => {
    for (const [path] of settingsOfToml(textOf("almanac.toml"))) {
      assert.notEqual(settings_by_path.get(path)?.form, "secret", path)
    }
    assert.notMatch(textOf("almanac.toml"), /^token =/m)
  })
})

describe("compose.yaml", () => {
  const { services, configs, secrets, volumes } = compose()

  for (const [name, service] of Object.entries(services)) {
    it(`runs ${name} without rights, from an image of one version`, () => {
      expect(service).toMatchObject({ read_only: true, cap_drop: ["ALL"] })
      expect(service.security_opt).toEqual(["no-new-privileges:true"])
      expect(service.ulimits?.core).toBe(0)
      expect(service.privileged).toBeUndefined()
      assert.match(service.image, /^almanac$|^[a-z/]+:v?\d+/)
    })

    it(`gives ${name} what there is`, () => {
      for (const [variable, value] of Object.entries(service.environment ?? {})) {
        const path = settingOfVariable(variable)
        if (path !== undefined) assert.isTrue(acceptedText(path, String(value)), variable)
      }
      for (const secret of service.secrets ?? []) {
        assert.property(secrets, typeof secret === "string" ? secret : secret.source)
      }
      for (const { source } of service.configs ?? []) assert.property(configs, source)
      for (const volume of service.volumes ?? []) {
        assert.property(volumes, volume.split(":")[0] ?? "")
      }
      for (const other of Object.keys(service.depends_on ?? {})) assert.property(services, other)
    })
  }

  it("has the files that it names, and secrets that secrets.sh makes", () => {
    for (const { file } of Object.values(configs)) {
      assert.isTrue(existsSync(join("deploy", file)), file)
    }
    const made = textOf("secrets.sh")
    for (const { file } of Object.values(secrets)) {
      assert.match(file, /^secrets\//)
      assert.include(made, file.split("/")[1] ?? "")
    }
  })

  it("names secrets at the paths where the settings look for them", () => {
    const files = settingsOfToml(textOf("almanac.toml")).flatMap(([path, value]) =>
      path.endsWith("_file") ? [String(value)] : [],
    )
    const tokens = textOf("almanac.toml").matchAll(/token_file = "(.+)"/g)
    const wanted = [...files, ...[...tokens].map(([, file = ""]) => file)]
    expect(wanted.length).toBeGreaterThan(3)
    for (const file of wanted) {
      expect(services["gateway-1"]?.secrets).toContain(file.replace("/run/secrets/", ""))
    }
  })

  it("gives what runs of our image a volume where its user may write", () => {
    const home = /^VOLUME (.+)$/m.exec(textOf("Dockerfile"))?.[1]
    // A volume takes the owner of the image's folder; without that folder, root owns it.
    const make = "install --directory --owner 10001 --group 10001 --mode 0700"
    assert.include(textOf("Dockerfile"), `${make} ${home}\n`)
    for (const [name, { image, volumes, environment }] of Object.entries(services)) {
      if (image !== "almanac") continue
      expect(volumes, name).toEqual([`${name}:${home}`])
      if (environment?.NATS_STORE !== undefined) expect(environment.NATS_STORE).toBe(home)
    }
  })

  it("asks PostgreSQL by the network: by its socket it answers while it is being made", () => {
    expect(services.postgres?.healthcheck?.test).toEqual(
      expect.arrayContaining(["--host", "127.0.0.1"]),
    )
  })

  it("gives every role to a process", () => {
    const roles = Object.values(services).flatMap(({ environment }) =>
      (environment?.ALMANAC_ROLES ?? "").split(","),
    )
    // Workers need access to the tenants' shares, so they run on machines of their own.
    expect(new Set(roles.filter((role) => role !== ""))).toEqual(
      new Set(["gateway", "actors", "conductor", "projections", "blob"]),
    )
  })

  it("lists every gateway and node for the proxy, and every process for Prometheus", () => {
    const ours = Object.entries(services).flatMap(([name, { environment }]) =>
      environment?.ALMANAC_ROLES === undefined ? [] : [name],
    )
    const targets = textOf("prometheus/prometheus.yml")
    for (const name of ours) assert.include(targets, `- ${name}:${port}`)
    for (const name of ours.filter((name) => /^(gateway|blob)-/.test(name))) {
      assert.include(textOf("Caddyfile"), `${name}:${port}`)
    }
    assert.include(textOf("Caddyfile"), "health_uri /readyz")
  })
})

describe("secrets.sh and nats.conf", () => {
  it("make a configuration that nats-server takes, once", () => {
    const folder = newFolder()
    const make = () => {
      execFileSync("cp", ["-r", "deploy/secrets.sh", "deploy/nats", folder])
      // Root can overwrite any file, so another user runs the script.
      if (process.getuid?.() === 0) execFileSync("chown", ["-R", "65534:65534", folder])
      const { uid, gid } = statSync(folder)
      execFileSync("sh", [join(folder, "secrets.sh")], { uid, gid, stdio: "pipe" })
      return readFileSync(join(folder, "secrets/nats-passwords.conf"), "utf8")
    }
    const first = make()
    expect(make()).toBe(first)
    expect(new Set(first.match(/p[0-9a-f]{64}/g)).size).toBe(3)
    const nats = join(folder, "nats")
    execFileSync("cp", [join(folder, "secrets/nats-passwords.conf"), join(nats, "passwords.conf")])
    const binary = findBinary("nats-server")?.path ?? "nats-server"
    const env = { ...process.env, NATS_NAME: "nats-1", NATS_STORE: join(folder, "store") }
    const check = () => spawnSync(binary, ["-t", "-c", join(nats, "nats.conf")], { env })
    expect(check().status).toBe(0)
    rmSync(join(nats, "passwords.conf"))
    expect(check().status).not.toBe(0)
    return cleanUp()
  })
})

describe("nats.conf", () => {
  it("shares the published events as our own server does", () => {
    const own = readFileSync("nats.conf", "utf8")
    const between = (from: string, to: string) =>
      own.slice(own.indexOf(from), own.indexOf(to, own.indexOf(from)))
    const sharing = between("    exports: [", "  }\n")
    const accounts = between("  # A copy of the published events", "\n}\n")
      .replaceAll(/\bEVENTS(?=[,\]])/g, "CORE")
      .replace("$ALMANAC_NATS_SUBSCRIBER", "$NATS_SUBSCRIBER")
      .replace(", deny: []", "")
      .replace("      # subscribers\n", "")
    assert.include(sharing, "MIRROR.API")
    assert.include(accounts, "$NATS_SUBSCRIBER")
    const text = readFileSync("deploy/nats/nats.conf", "utf8")
    assert.include(text, sharing)
    assert.include(text, accounts)
  })
})

describe("secrets.sh without openssl", () => {
  it("makes nothing: what it made once it would never make better", () => {
    const folder = newFolder()
    execFileSync("cp", ["deploy/secrets.sh", folder])
    writeFileSync(join(folder, "openssl"), "#!/bin/sh\nexit 1\n", { mode: 0o755 })
    const env = { ...process.env, PATH: `${folder}:${process.env.PATH}` }
    expect(spawnSync("sh", [join(folder, "secrets.sh")], { env }).status).not.toBe(0)
    expect(readdirSync(join(folder, "secrets"))).toEqual([])
    return cleanUp()
  })
})

describe("the manifests of Kubernetes", () => {
  const all = manifests()
  /** An object's `kind` determines its spec. */
  const of = <Spec extends object = object>(kind: string) =>
    all.filter((one): one is Manifest<Spec> => one.kind === kind)
  const named = (kind: string, name: string) => of(kind).find((one) => one.metadata.name === name)

  it("are all part of the kustomization, with the files of its map", () => {
    const listed = kustomization().resources
    expect(listed.toSorted()).toEqual(kubernetesFiles().map((name) => `kubernetes/${name}`))
    for (const { files } of kustomization().configMapGenerator) {
      for (const file of files) assert.isTrue(existsSync(join("deploy", file)), file)
    }
  })

  for (const set of of<StatefulSet>("StatefulSet")) {
    const { name } = set.metadata
    const pod = set.spec.template.spec
    const [container] = pod.containers

    it(`keep ${name} to the restricted standard of pods`, () => {
      expect(pod.securityContext).toMatchObject({
        runAsNonRoot: true,
        runAsUser: 10001,
        seccompProfile: { type: "RuntimeDefault" },
      })
      expect(container.securityContext).toEqual({
        allowPrivilegeEscalation: false,
        readOnlyRootFilesystem: true,
        capabilities: { drop: ["ALL"] },
      })
      expect(pod.automountServiceAccountToken).toBe(false)
      expect(container.resources.limits.memory).toMatch(/^\dGi$/)
    })

    it(`ask ${name} how it is by what there is, and end it in its time`, () => {
      for (const probe of ["startupProbe", "livenessProbe", "readinessProbe"] as const) {
        const { path, port: wanted } = container[probe].httpGet
        const found = container.ports.find(({ name }) => name === wanted)?.containerPort
        if (name === "nats") {
          expect([found, path.split("?")[0]]).toEqual([8222, "/healthz"])
        } else {
          expect([found, routes.includes(path)]).toEqual([port, true])
        }
      }
      // A gateway that waits for others is not ready, but it is live and must not be killed.
      if (name !== "nats") expect(container.livenessProbe.httpGet.path).toBe("/livez")
      expect(pod.terminationGracePeriodSeconds).toBeGreaterThanOrEqual(20)
    })

    it(`select the pods of ${name} by what they are`, () => {
      const labels = set.spec.template.metadata.labels
      expect(labels).toMatchObject(set.spec.selector.matchLabels)
      expect(named("Service", set.spec.serviceName)?.spec).toMatchObject({
        selector: { app: labels.app },
      })
      expect(named("PodDisruptionBudget", name)?.spec).toEqual({
        maxUnavailable: 1,
        selector: { matchLabels: { app: labels.app } },
      })
      const mounts = container.volumeMounts
      const volumes = new Set([
        ...pod.volumes.map((volume) => volume.name),
        ...set.spec.volumeClaimTemplates.map((claim) => claim.metadata.name),
      ])
      for (const mount of mounts) assert.isTrue(volumes.has(mount.name), mount.name)
      // The root folder of a volume belongs to root, is open to the group, and may hold lost+found.
      const disk = mounts.find((mount) => mount.name === "data")?.mountPath
      const folder = /ALMANAC_DATA_DIR=(\S+)/.exec(textOf("Dockerfile"))?.[1]
      if (name !== "nats") expect(folder).toBe(`${disk}/data`)
      expect(container.env.map(({ name }) => name)).not.toContain("ALMANAC_DATA_DIR")
      for (const { name: variable, value } of container.env) {
        const path = settingOfVariable(variable)
        if (path === undefined || value === undefined || value.includes("$(")) continue
        assert.isTrue(acceptedText(path, value), variable)
      }
    })
  }

  it("admit only named callers", () => {
    const [closed] = of("NetworkPolicy")
    expect(closed?.spec).toEqual({
      podSelector: { matchLabels: { part: "almanac" } },
      policyTypes: ["Ingress"],
    })
    for (const { spec } of of<NetworkPolicy>("NetworkPolicy").slice(1)) {
      for (const { from, ports } of spec.ingress) {
        expect(from.length).toBeGreaterThan(0)
        expect(ports.length).toBeGreaterThan(0)
      }
    }
  })
})

describe("the Dockerfile", () => {
  const text = textOf("Dockerfile").replaceAll(/\\\n\s*/g, "")
  const lines = text.split("\n").filter((line) => line !== "" && !line.startsWith("#"))
  const final = lines.slice(lines.findLastIndex((line) => line.startsWith("FROM ")))
  const json = (beginning: string): ReadonlyArray<string> => {
    const line = final.find((one) => one.includes(beginning)) ?? ""
    return JSON.parse(line.slice(line.indexOf("[")))
  }

  it("copies what there is, and nothing that a build should not see", () => {
    const ignored = readFileSync(".dockerignore", "utf8").split("\n")
    for (const line of lines.filter((one) => one.startsWith("COPY ") && !one.includes("--from"))) {
      for (const path of line.split(" ").slice(1, -1)) {
        assert.isTrue(existsSync(path), path)
        assert.notInclude(ignored, path)
      }
    }
    expect(ignored).toEqual(expect.arrayContaining([".git", "data", "node_modules", "deploy"]))
  })

  it("runs as its own user, and stops with the signal that the program handles", () => {
    expect(final).toContain("USER 10001:10001")
    // With --create-home, the data folder would contain shell files.
    assert.include(text, "groupadd --gid 10001 almanac && useradd --uid 10001 --gid 10001")
    assert.include(text, "--no-create-home")
    expect(final).toContain("STOPSIGNAL SIGTERM")
    expect(final).toContain(`EXPOSE ${port}`)
    const [shell, start = "", , script = ""] = json("ENTRYPOINT")
    expect(shell).toBe("/bin/sh")
    assert.isTrue(existsSync(start) && existsSync(script))
    assert.include(
      readFileSync("package.json", "utf8"),
      `exec sh ${start} node ${script} ${json('CMD ["serve')[0]}`,
    )
  })

  it("has a command `almanac` that does what its entry does", () => {
    const folder = newFolder()
    const [, quoted = ""] = /printf '(.+?)'/.exec(text) ?? []
    const [, , node = "", script = ""] = json("ENTRYPOINT")
    const at = `/opt/almanac/${script}`
    expect(quoted).toBe(`#!/bin/sh\\nexec ${node} ${at} "$@"\\n`)
    const here = quoted.replace(node, "/bin/echo").replace(at, "run")
    execFileSync("sh", ["-c", `printf '${here}' > almanac; chmod 0755 almanac`], { cwd: folder })
    expect(execFileSync(join(folder, "almanac"), ["a b", "c"], { encoding: "utf8" })).toBe(
      "run a b c\n",
    )
    return cleanUp()
  })

  it("has a health check that distinguishes a live process from a dead one", async () => {
    const [, ...args] = json("HEALTHCHECK")
    const check = async (status: number | undefined) => {
      const server = createServer((request, response) => {
        response.statusCode = request.url === "/livez" ? (status ?? 0) : 404
        response.end()
      })
      await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
      const address = server.address()
      const own = typeof address === "object" && address ? address.port : 0
      if (status === undefined) server.close()
      const env = { ...process.env, ALMANAC_API__BIND_PORT: String(own) }
      const { promise, resolve } = Promise.withResolvers<number | null>()
      const { spawn } = await import("node:child_process")
      spawn(process.execPath, args, { env }).on("exit", resolve)
      const code = await promise
      server.close()
      return code
    }
    expect(await check(200)).toBe(0)
    expect(await check(503)).toBe(1)
    expect(await check(undefined)).toBe(1)
  })
})
