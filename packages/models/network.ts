/** A network as it was read from a file of whatever form: what it is made of, and its weights. */
import type { Layer, Model } from "./keras/config.ts"
import type { Weight } from "./weight.ts"

export interface Network {
  readonly model: Model
  /** Whether Keras 3 wrote it, which computes a few activations otherwise. */
  readonly is_keras_3: boolean
  /** The layer's weight of one of these names, Keras 2's and 3's; absent where it has none. */
  readonly weight: (layer: Layer, ...names: ReadonlyArray<string>) => Weight | undefined
  readonly close: () => void
}

/** A weight that is in a file by its name, `conv1/kernel` or `sequential/conv1/kernel:0`. */
export interface NamedWeight {
  /** The layer of the outermost model that it belongs to, where the file says so. */
  readonly group: string | undefined
  readonly name: string
  readonly weight: () => Weight | undefined
}

/**
 * Finds weights by name, never by position: a frozen layer's come in another order. A layer's name
 * may hold slashes, and a weight's may begin with those of the models around it.
 */
export const byName = (
  named: ReadonlyArray<NamedWeight>,
): ((layer: Layer, variable: string) => Weight | undefined) => {
  const variables = new Map<string, Array<NamedWeight>>()
  for (const entry of named) {
    // Keras 3 numbers the variables of its own layers that were given no name.
    const name = entry.name.replace(/:\d+$/, "").replace(/\/variable_\d+$/, "/variable")
    const variable = name.slice(name.lastIndexOf("/") + 1)
    const known = variables.get(variable) ?? []
    variables.set(variable, known)
    known.push({ ...entry, name })
  }
  return (layer, variable) => {
    const outermost = layer.within[1] ?? layer.name
    const near = (variables.get(variable) ?? []).filter(
      ({ group }) => group === undefined || group === outermost,
    )
    return chosen(near, layer, variable)?.weight()
  }
}

const chosen = (near: ReadonlyArray<NamedWeight>, { name, within }: Layer, variable: string) => {
  const wanted = `${name}/${variable}`
  for (let first = within.length; first >= 0; first--) {
    const whole = [...within.slice(first), wanted].join("/")
    const exact = near.filter((entry) => entry.name === whole)
    if (exact.length === 1) return exact[0]
  }
  const ending = near.filter((entry) => entry.name.endsWith(`/${wanted}`))
  if (ending.length === 1) return ending[0]
  // The layer was renamed after it was made: its group says whose the weight is.
  const is_alone = within.length === 1 && near.length === 1
  return is_alone && near[0]?.group !== undefined ? near[0] : undefined
}
