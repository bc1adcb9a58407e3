/** Converts normalization layers. */
import { fromNhwc, perChannel, toNhwc } from "../graph-builder.ts"
import { listOf } from "../keras/config.ts"
import { readValues, type Weight, weightOf } from "../weight.ts"
import { type Conversion, type Convert, numberOf, rejectLayer, requiredWeight } from "./layer.ts"

/** Throws a ModelError unless the layer normalizes along the last axis. */
const requireLastAxis = ({ layer, config, input }: Conversion) => {
  const axes = Array.isArray(config.axis) ? config.axis : [config.axis ?? -1]
  const last = input.shape.length
  if (axes.length !== 1 || (axes[0] !== -1 && axes[0] !== last)) {
    rejectLayer(layer, `normalizes along ${JSON.stringify(config.axis)}`)
  }
}

const filled = (count: number, value: number): Weight =>
  weightOf(new Float32Array(count).fill(value))

const scaleOf = (conversion: Conversion, count: number) =>
  conversion.config.scale === false
    ? filled(count, 1)
    : requiredWeight(conversion, ["gamma"], [count])

const offsetOf = (conversion: Conversion, count: number) =>
  conversion.config.center === false
    ? filled(count, 0)
    : requiredWeight(conversion, ["beta"], [count])

const batchNormalization: Convert = (conversion) => {
  const { graph, config, input, layer, addWeight: place } = conversion
  requireLastAxis(conversion)
  if (input.shape.length === 2) return rejectLayer(layer, "is called with a tensor of two axes")
  const count = input.shape.at(-1) ?? 1
  const inputs = [
    input.name,
    place("gamma", scaleOf(conversion, count)),
    place("beta", offsetOf(conversion, count)),
    place("moving_mean", requiredWeight(conversion, ["moving_mean"], [count])),
    place("moving_variance", requiredWeight(conversion, ["moving_variance"], [count])),
  ]
  const epsilon = { float: numberOf(config, "epsilon", 1e-3) }
  return { name: graph.add("BatchNormalization", inputs, { epsilon }), shape: input.shape }
}

const layerNormalization: Convert = (conversion) => {
  const { graph, config, input, layer, addWeight: place } = conversion
  requireLastAxis(conversion)
  if (config.rms_scaling === true) return rejectLayer(layer, "scales by the root mean square")
  const count = input.shape.at(-1) ?? 1
  const inputs = [
    toNhwc(graph, input),
    place("gamma", scaleOf(conversion, count)),
    place("beta", offsetOf(conversion, count)),
  ]
  const epsilon = { float: numberOf(config, "epsilon", 1e-3) }
  const name = graph.add("LayerNormalization", inputs, { axis: -1, epsilon })
  return fromNhwc(graph, name, input.shape)
}

/** Adds a scalar, or one value for each channel. */
const constantOf = (conversion: Conversion, values: ArrayLike<number>) => {
  const { graph, input, layer } = conversion
  const channels = input.shape.at(-1) ?? 1
  if (values.length === 1) return graph.floats(values)
  if (values.length !== channels) return rejectLayer(layer, `has ${values.length} constants`)
  return graph.floats(values, perChannel(input, channels))
}

const numbersOf = ({ layer }: Conversion, value: unknown): ReadonlyArray<number> => {
  // Keras 2 and 3 nest adapted values: [[[[0.1, 0.2, 0.3]]]].
  const numbers = listOf(Array.isArray(value) ? value.flat(Number.POSITIVE_INFINITY) : [value])
  if (numbers.every((number) => typeof number === "number" && Number.isFinite(number))) {
    return numbers.map(Number)
  }
  return rejectLayer(layer, `has the constants ${JSON.stringify(value)}`)
}

const rescaling: Convert = (conversion) => {
  const { graph, config, input } = conversion
  const scale = constantOf(conversion, numbersOf(conversion, config.scale ?? 1))
  const offset = constantOf(conversion, numbersOf(conversion, config.offset ?? 0))
  const name = graph.add("Add", [graph.add("Mul", [input.name, scale]), offset])
  return { name, shape: input.shape }
}

/** (x - mean) / max(sqrt(variance), 1e-7), along the last axis or all. */
const normalization: Convert = (conversion) => {
  const { graph, config, input, layer, weight } = conversion
  if (config.invert === true) return rejectLayer(layer, "inverts")
  if (config.axis !== null) requireLastAxis(conversion)
  const valuesFor = (name: string): ReadonlyArray<number> => {
    if (config[name] != null) return numbersOf(conversion, config[name])
    const found = weight(name)
    if (found === undefined) return rejectLayer(layer, `was never adapted and has no ${name}`)
    return [...readValues(found)]
  }
  const deviation = valuesFor("variance").map((variance) => Math.max(Math.sqrt(variance), 1e-7))
  const centred = graph.add("Sub", [input.name, constantOf(conversion, valuesFor("mean"))])
  return {
    name: graph.add("Div", [centred, constantOf(conversion, deviation)]),
    shape: input.shape,
  }
}

/** Keras's ConvNeXt: multiplies each channel by a learned factor. */
const layerScale: Convert = (conversion) => {
  const { graph, input } = conversion
  const gamma = requiredWeight(conversion, ["gamma", "variable"], [input.shape.at(-1)])
  const name = graph.add("Mul", [input.name, constantOf(conversion, [...readValues(gamma)])])
  return { name, shape: input.shape }
}

export const normalizations: Readonly<Record<string, Convert>> = {
  BatchNormalization: batchNormalization,
  SyncBatchNormalization: batchNormalization,
  LayerNormalization: layerNormalization,
  LayerScale: layerScale,
  Normalization: normalization,
  Rescaling: rescaling,
}
