/** A network read from any supported file format: its layers and weights. */
import type { Layer, Model } from "./keras/config.ts"
import type { Weight } from "./weight.ts"

export interface Network {
  readonly model: Model
  /** Whether Keras 3 wrote it: it computes a few activations differently from Keras 2. */
  readonly is_keras_3: boolean
  /** The layer's first weight with one of these names, which differ between Keras 2 and 3. */
  readonly weight: (layer: Layer, ...names: ReadonlyArray<string>) => Weight | undefined
  readonly close: () => void
}

/** A weight named in a file, such as `conv1/kernel` or `sequential/conv1/kernel:0`. */
export interface NamedWeight {
  /** The weight's layer in the outermost model, if the file groups weights by layer. */
  readonly group: string | undefined
  readonly name: string
  readonly weight: () => Weight | undefined
}

/**
 * Returns a lookup of weights by name, never by position: a frozen layer's weights are in another
 * order. A layer's name may contain slashes, and a weight's may begin with the enclosing models'.
 */
export const weightFinder = (
  named: ReadonlyArray<NamedWeight>,
): ((layer: Layer, variable: string) => Weight | undefined) => {
  const variables = new Map<string, Array<NamedWeight>>()
  for (const entry of named) {
    // Keras 3 numbers the unnamed variables of its own layers.
    const name = entry.name.replace(/:\d+$/, "").replace(/\/variable_\d+$/, "/variable")
    const variable = name.slice(name.lastIndexOf("/") + 1)
    const known = variables.get(variable) ?? []
    variables.set(variable, known)
    known.push({ ...entry, name })
  }
  return (layer, variable) => {
    const outermost = layer.within[1] ?? layer.name
    const candidates = (variables.get(variable) ?? []).filter(
      ({ group }) => group === undefined || group === outermost,
    )
    return bestMatch(candidates, layer, variable)?.weight()
  }
}

const bestMatch = (near: ReadonlyArray<NamedWeight>, { name, within }: Layer, variable: string) => {
  const wanted = `${name}/${variable}`
  for (let first = within.length; first >= 0; first--) {
    const full_name = [...within.slice(first), wanted].join("/")
    const exact = near.filter((entry) => entry.name === full_name)
    if (exact.length === 1) return exact[0]
  }
  const suffix_matches = near.filter((entry) => entry.name.endsWith(`/${wanted}`))
  if (suffix_matches.length === 1) return suffix_matches[0]
  // The layer was renamed after its weights were created, so only the group identifies it.
  const is_unambiguous = within.length === 1 && near.length === 1
  return is_unambiguous && near[0]?.group !== undefined ? near[0] : undefined
}
