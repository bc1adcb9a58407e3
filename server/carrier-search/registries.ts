/** The registries of carriers that the settings lead to. Source: decisions, carrier registry. */
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
  "no carrier registry is set up: put your own QCMobile web key into FMCSA_WEB_KEY and start " +
  `again, or ${fill} (or --demo)`
const no_mirror = `carrier.registry is mirror, and there is no mirror yet: ${fill} (or --demo)`

/** What there is to say where nothing answers. */
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

const built = (layer: Layer.Layer<Registry>) =>
  Effect.map(Layer.build(layer), (context) => Context.get(context, Registry))

/** FMCSA by its HTTP client, which is loaded only where there is a key to ask it with. */
const openFmcsa = Effect.fnUntraced(function* ({ registry_url: url, ...carrier }: Carrier) {
  if (Redacted.value(carrier.web_key) === "") return undefined
  const { protocol, hostname } = new URL(url)
  if (protocol === "http:" && !isLoopback(hostname)) {
    yield* Effect.logWarning("The web key travels in the clear: carrier.registry_url is http://.")
  }
  const { registryFmcsa } = yield* Effect.promise(
    () => import("#adapters/carrier-search/registry-fmcsa.ts"),
  )
  return yield* built(registryFmcsa({ ...carrier, url, version }))
})

type Carrier = Settings["carrier"]

/**
 * Which registry answers, decided anew for each search: a mirror that is imported while the server
 * runs is used from then on. They live as long as the scope.
 */
export const carrierRegistries = Effect.fnUntraced(function* (
  settings: Pick<Settings, "carrier" | "data">,
) {
  const { carrier } = settings
  const path = mirrorFile(settings)
  const fmcsa = yield* openFmcsa(carrier)
  const mirror = yield* built(registryMirror({ path }))

  const setUp = (): ReadonlyArray<InUse> => [
    ...(fmcsa === undefined ? [] : [{ name: "fmcsa", registry: fmcsa } as const]),
    ...(hasMirror(path) ? [{ name: "mirror", registry: mirror } as const] : []),
  ]
  const in_use = Effect.suspend(() => {
    const { registry } = carrier
    const chosen = setUp().find(({ name }) => registry === "auto" || name === registry)
    if (chosen !== undefined) return Effect.succeed(chosen)
    return Effect.fail(new NoRegistry({ detail: registry === "mirror" ? no_mirror : none_at_all }))
  })
  const sources = Effect.gen(function* () {
    const first = yield* Effect.match(in_use, {
      onFailure: ({ detail }) => ({ name: "none", source: Effect.succeed(noneOf(detail)) }),
      onSuccess: ({ name, registry }) => ({ name, source: registry.source }),
    })
    const others = setUp().filter(({ name }) => name !== first.name)
    return yield* Effect.all([first.source, ...others.map(({ registry }) => registry.source)])
  })
  return Registries.of({ in_use, sources })
})
