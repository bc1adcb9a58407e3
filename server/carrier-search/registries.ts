/** The configured carrier registries. Source: decisions, carrier registry. */
import { Context, Effect, Layer, Redacted } from "effect"
import { Registry } from "#actors/carrier-search/registry.ts"
import { hasMirror, mirrorFile, registryMirror } from "#adapters/carrier-search/mirror.ts"
import { type InUse, NoRegistry, Registries } from "#gateway/carrier-search/registries.ts"
import type { Source } from "#schemas/carrier-search/source.ts"
import type { Settings } from "#schemas/settings.ts"
import { isLoopback } from "#schemas/settings-rules.ts"
import { version } from "#server/program.ts"

const fill = "fill the mirror with `almanac carriers import FILE...`"
const none_at_all =
  "no carrier registry is set up: set FMCSA_WEB_KEY to your own QCMobile web key and restart, " +
  `or ${fill} (or --demo)`
const no_mirror = `carrier.registry is mirror, but no mirror exists yet: ${fill} (or --demo)`

/** The source to report if no registry is available. */
const noneOf = (detail: string): Source => ({
  registry: "none",
  is_healthy: false,
  detail,
  carriers: null,
  dockets: null,
  as_of: null,
  imported_at: null,
  is_demo: false,
  concurrency: null,
  last_answer_at: null,
  last_error_at: null,
  last_error: null,
})

const buildRegistry = (layer: Layer.Layer<Registry>) =>
  Effect.map(Layer.build(layer), (context) => Context.get(context, Registry))

/** The FMCSA registry; its HTTP client is loaded only if a key is configured. */
const openFmcsa = Effect.fnUntraced(function* ({ registry_url: url, ...carrier }: Carrier) {
  if (Redacted.value(carrier.web_key) === "") return undefined
  const { protocol, hostname } = new URL(url)
  if (protocol === "http:" && !isLoopback(hostname)) {
    yield* Effect.logWarning("The web key is sent unencrypted: carrier.registry_url is http://.")
  }
  const { registryFmcsa } = yield* Effect.promise(
    () => import("#adapters/carrier-search/registry-fmcsa.ts"),
  )
  return yield* buildRegistry(registryFmcsa({ ...carrier, url, version }))
})

type Carrier = Settings["carrier"]

/**
 * The registries, until the scope closes. Each search selects one, so that a mirror that is
 * imported while the server runs takes effect at once.
 */
export const carrierRegistries = Effect.fnUntraced(function* (
  settings: Pick<Settings, "carrier" | "data">,
) {
  const { carrier } = settings
  const path = mirrorFile(settings)
  const fmcsa = yield* openFmcsa(carrier)
  const mirror = yield* buildRegistry(registryMirror({ path }))

  const configured = (): ReadonlyArray<InUse> => [
    ...(fmcsa === undefined ? [] : [{ name: "fmcsa", registry: fmcsa } as const]),
    ...(hasMirror(path) ? [{ name: "mirror", registry: mirror } as const] : []),
  ]
  const in_use = Effect.suspend(() => {
    const { registry } = carrier
    const selected = configured().find(({ name }) => registry === "auto" || name === registry)
    if (selected !== undefined) return Effect.succeed(selected)
    return Effect.fail(new NoRegistry({ detail: registry === "mirror" ? no_mirror : none_at_all }))
  })
  const sources = Effect.gen(function* () {
    const first = yield* Effect.match(in_use, {
      onFailure: ({ detail }) => ({ name: "none", source: Effect.succeed(noneOf(detail)) }),
      onSuccess: ({ name, registry }) => ({ name, source: registry.source }),
    })
    const others = configured().filter(({ name }) => name !== first.name)
    return yield* Effect.all([first.source, ...others.map(({ registry }) => registry.source)])
  })
  return Registries.of({ in_use, sources })
})
