/** The files of deploy/, parsed for tests. */
import { readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { parse as parseToml } from "smol-toml"
import { parseAllDocuments, parse as parseYaml } from "yaml"
import { settings_by_path, variableOf } from "#schemas/settings.ts"

export const textOf = (path: string) => readFileSync(join("deploy", path), "utf8")

export interface Service {
  readonly image: string
  readonly entrypoint?: ReadonlyArray<string>
  readonly read_only?: boolean
  readonly cap_drop?: ReadonlyArray<string>
  readonly security_opt?: ReadonlyArray<string>
  readonly ulimits?: Readonly<Record<string, number>>
  readonly environment?: Readonly<Record<string, string>>
  readonly healthcheck?: { readonly test: ReadonlyArray<string> }
  readonly depends_on?: Readonly<Record<string, unknown>>
  readonly secrets?: ReadonlyArray<string | { readonly source: string; readonly target: string }>
  readonly configs?: ReadonlyArray<{ readonly source: string; readonly target: string }>
  readonly volumes?: ReadonlyArray<string>
  readonly stop_grace_period?: string
  readonly privileged?: boolean
}

interface Compose {
  readonly services: Readonly<Record<string, Service>>
  readonly configs: Readonly<Record<string, { readonly file: string }>>
  readonly secrets: Readonly<Record<string, { readonly file: string }>>
  readonly volumes: Readonly<Record<string, null>>
}

export const compose = (): Compose => parseYaml(textOf("compose.yaml"), { merge: true })

type Texts = Readonly<Record<string, string>>

interface Named {
  readonly name: string
}

interface Probe {
  readonly httpGet: { readonly path: string; readonly port: string }
}

interface Container {
  readonly securityContext: object
  readonly resources: { readonly limits: { readonly memory: string } }
  readonly ports: ReadonlyArray<Named & { readonly containerPort: number }>
  readonly startupProbe: Probe
  readonly livenessProbe: Probe
  readonly readinessProbe: Probe
  readonly volumeMounts: ReadonlyArray<Named & { readonly mountPath: string }>
  readonly env: ReadonlyArray<Named & { readonly value?: string }>
}

/** The fields that tests use. */
export interface StatefulSet {
  readonly serviceName: string
  readonly selector: { readonly matchLabels: Texts }
  readonly volumeClaimTemplates: ReadonlyArray<{ readonly metadata: Named }>
  readonly template: {
    readonly metadata: { readonly labels: Texts }
    readonly spec: {
      readonly securityContext: object
      readonly automountServiceAccountToken: boolean
      readonly terminationGracePeriodSeconds: number
      readonly containers: readonly [Container]
      readonly volumes: ReadonlyArray<Named>
    }
  }
}

export interface NetworkPolicy {
  readonly ingress: ReadonlyArray<{
    readonly from: ReadonlyArray<object>
    readonly ports: ReadonlyArray<object>
  }>
}

export interface Manifest<Spec = object> {
  readonly kind: string
  readonly metadata: Named
  readonly spec: Spec
}

const manifestsIn = (path: string): ReadonlyArray<Manifest> =>
  parseAllDocuments(textOf(path)).map((document) => document.toJS())

export const kustomization = (): {
  readonly resources: ReadonlyArray<string>
  readonly configMapGenerator: ReadonlyArray<{ readonly files: ReadonlyArray<string> }>
} => parseYaml(textOf("kustomization.yaml"))

export const manifests = () => kustomization().resources.flatMap(manifestsIn)

export const kubernetesFiles = () => readdirSync("deploy/kubernetes")

/**
 * `section.name` and value of each setting of a TOML file; a list of tables counts as one setting.
 */
export const settingsOfToml = (text: string): ReadonlyArray<readonly [string, unknown]> => {
  const walk = (value: unknown, path: string): ReadonlyArray<readonly [string, unknown]> =>
    typeof value === "object" && value !== null && !Array.isArray(value)
      ? Object.entries(value).flatMap(([name, below]) =>
          walk(below, path === "" ? name : `${path}.${name}`),
        )
      : [[path, value]]
  return walk(parseToml(text), "")
}

const paths = new Map([...settings_by_path.keys()].map((path) => [variableOf(path), path]))

/** Our variables that are paths of a process, not settings. */
const places = new Set(["ALMANAC_CONFIG", "ALMANAC_DATA_DIR", "ALMANAC_CACHE_DIR"])

/** The setting that a variable sets; undefined for a path or for a variable that is not ours. */
export const settingOfVariable = (name: string) => {
  if (!name.startsWith("ALMANAC_") || places.has(name)) return undefined
  const path = paths.get(name)
  if (path === undefined) throw new Error(`${name} is no setting`)
  return path
}
