/** Normalizations of Keras as ONNX has them. */
import { fromKerasOrder, inKerasOrder, perChannel } from "../graph.ts"
import { listOf } from "../keras/config.ts"
import { valuesOf, type Weight, weightOf } from "../weight.ts"
import { type Conversion, type Convert, needed, numberOf, refuse } from "./layer.ts"

/** Throws where it is not the last axis that is normalized along. */
const checkAxis = ({ layer, config, input }: Conversion) => {
  const axes = Array.isArray(config.axis) ? config.axis : [config.axis ?? -1]
  const last = input.shape.length
  if (axes.length !== 1 || (axes[0] !== -1 && axes[0] !== last)) {
    refuse(layer, `normalizes along ${JSON.stringify(config.axis)}`)
  }
}

const filled = (count: number, value: number): Weight =>
  weightOf(new Float32Array(count).fill(value))

const scaleOf = (conversion: Conversion, count: number) =>
  conversion.config.scale === false ? filled(count, 1) : needed(conversion, ["gamma"], [count])

const centreOf = (conversion: Conversion, count: number) =>
  conversion.config.center === false ? filled(count, 0) : needed(conversion, ["beta"], [count])

const batchNormalization: Convert = (conversion) => {
  const { graph, config, input, layer, place } = conversion
  checkAxis(conversion)
  if (input.shape.length === 2) return refuse(layer, "is called with a tensor of two axes")
  const count = input.shape.at(-1) ?? 1
  const inputs = [
    input.name,
    place("gamma", scaleOf(conversion, count)),
    place("beta", centreOf(conversion, count)),
    place("moving_mean", needed(conversion, ["moving_mean"], [count])),
    place("moving_variance", needed(conversion, ["moving_variance"], [count])),
  ]
  const epsilon = { float: numberOf(config, "epsilon", 1e-3) }
  return { name: graph.add("BatchNormalization", inputs, { epsilon }), shape: input.shape }
}

const layerNormalization: Convert = (conversion) => {
  const { graph, config, input, layer, place } = conversion
  checkAxis(conversion)
  if (config.rms_scaling === true) return refuse(layer, "scales by the root mean square")
  const count = input.shape.at(-1) ?? 1
  const inputs = [
    inKerasOrder(graph, input),
    place("gamma", scaleOf(conversion, count)),
    place("beta", centreOf(conversion, count)),
  ]
  const epsilon = { float: numberOf(config, "epsilon", 1e-3) }
  const name = graph.add("LayerNormalization", inputs, { axis: -1, epsilon })
  return fromKerasOrder(graph, name, input.shape)
}

/** One number, or one for each channel. */
const constantOf = (conversion: Conversion, values: ArrayLike<number>) => {
  const { graph, input, layer } = conversion
  const channels = input.shape.at(-1) ?? 1
  if (values.length === 1) return graph.floats(values)
  if (values.length !== channels) return refuse(layer, `has ${values.length} constants`)
  return graph.floats(values, perChannel(input, channels))
}

const numbersOf = ({ layer }: Conversion, value: unknown): ReadonlyArray<number> => {
  // Keras 2 and 3 nest what was adapted: [[[[0.1, 0.2, 0.3]]]].
  const numbers = listOf(Array.isArray(value) ? value.flat(Number.POSITIVE_INFINITY) : [value])
  if (numbers.every((number) => typeof number === "number" && Number.isFinite(number))) {
    return numbers.map(Number)
  }
  return refuse(layer, `has the constants ${JSON.stringify(value)}`)
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
  if (config.invert === true) return refuse(layer, "inverts")
  if (config.axis !== null) checkAxis(conversion)
  const valuesFor = (name: string): ReadonlyArray<number> => {
    if (config[name] != null) return numbersOf(conversion, config[name])
    const found = weight(name)
    if (found === undefined) return refuse(layer, `was never adapted and has no ${name}`)
    return [...valuesOf(found)]
  }
  const deviation = valuesFor("variance").map((variance) => Math.max(Math.sqrt(variance), 1e-7))
  const centred = graph.add("Sub", [input.name, constantOf(conversion, valuesFor("mean"))])
  return {
    name: graph.add("Div", [centred, constantOf(conversion, deviation)]),
    shape: input.shape,
  }
}

/** Of Keras's own ConvNeXt: each channel by a factor that was learnt. */
const layerScale: Convert = (conversion) => {
  const { graph, input } = conversion
  const gamma = needed(conversion, ["gamma", "variable"], [input.shape.at(-1)])
  const name = graph.add("Mul", [input.name, constantOf(conversion, [...valuesOf(gamma)])])
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
