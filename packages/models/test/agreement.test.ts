/** Compares each converted layer, and a MobileNetV2, with TensorFlow.js. */
import { rmSync } from "node:fs"
import { join } from "node:path"
import "@tensorflow/tfjs-backend-wasm"
import * as tf from "@tensorflow/tfjs-core"
import * as layers from "@tensorflow/tfjs-layers"
import { beforeAll, describe, expect, it } from "vitest"
import { readTfjs } from "../tfjs.ts"
import { mobileNet } from "./mobile-network.ts"
import { difference, image, newPath, runNetwork } from "./run-network.ts"
import { type Add, seeded, through, type WeightType, writeTfjs } from "./tfjs-network.ts"

beforeAll(() => tf.setBackend("wasm"))

const write = (model: layers.LayersModel, packed?: WeightType) =>
  writeTfjs(model, newPath("tfjs"), packed)

const predict = (model: layers.LayersModel) =>
  tf.tidy(() => {
    const input = tf.tensor(image, [1, 224, 224, 3])
    const output = model.predict(input)
    if (Array.isArray(output)) throw new Error("the model has several outputs")
    return output.dataSync()
  })

const expectAgreement = async (model: layers.LayersModel) => {
  const expected = predict(model)
  const path = await write(model)
  const { values } = await runNetwork(readTfjs(path))
  rmSync(join(path, ".."), { recursive: true })
  expect(values.some((value) => value !== values[0])).toBe(true)
  expect(difference(values, expected)).toBeLessThan(1e-5)
}

const { conv2d, depthwiseConv2d, separableConv2d, activation, dense } = layers.layers

const merge = (layer: layers.layers.Layer): Add => {
  return (x) => {
    const one = through(conv2d({ filters: 3, kernelSize: 1, useBias: true }))(x)
    const other = through(conv2d({ filters: 3, kernelSize: 3, padding: "same" }))(x)
    return layer.apply([one, other, x]) as layers.SymbolicTensor // A layer returns one tensor here.
  }
}

const two = (layer: layers.layers.Layer): Add => {
  return (x) => {
    const other = through(conv2d({ filters: 3, kernelSize: 1 }))(x)
    return layer.apply([x, other]) as layers.SymbolicTensor // A layer returns one tensor here.
  }
}

/** The supported layers that tfjs has, each on an image of 14 by 14 pixels. */
const cases: Readonly<Record<string, Add>> = {
  "Conv2D valid": through(conv2d({ filters: 4, kernelSize: [3, 2] })),
  "Conv2D same, stride 2": through(
    conv2d({ filters: 4, kernelSize: 3, strides: 2, padding: "same" }),
  ),
  "Conv2D same, stride 3 of 2": through(
    conv2d({ filters: 2, kernelSize: 5, strides: [3, 2], padding: "same", useBias: false }),
  ),
  "Conv2D dilated": through(
    conv2d({ filters: 4, kernelSize: 3, dilationRate: 2, padding: "same" }),
  ),
  DepthwiseConv2D: through(depthwiseConv2d({ kernelSize: 3, depthMultiplier: 2, padding: "same" })),
  "DepthwiseConv2D stride 2": through(
    depthwiseConv2d({ kernelSize: 3, strides: 2, padding: "same" }),
  ),
  SeparableConv2D: through(separableConv2d({ filters: 5, kernelSize: 3, depthMultiplier: 2 })),
  "SeparableConv2D stride 2": through(
    separableConv2d({ filters: 5, kernelSize: 3, strides: 2, padding: "same", activation: "relu" }),
  ),
  "MaxPooling2D same": through(
    layers.layers.maxPooling2d({ poolSize: 3, strides: 2, padding: "same" }),
  ),
  MaxPooling2D: through(layers.layers.maxPooling2d({ poolSize: [2, 3] })),
  "AveragePooling2D same": through(
    layers.layers.averagePooling2d({ poolSize: 3, strides: 2, padding: "same" }),
  ),
  GlobalAveragePooling2D: through(
    conv2d({ filters: 5, kernelSize: 3 }),
    layers.layers.globalAveragePooling2d({}),
  ),
  GlobalMaxPooling2D: through(layers.layers.globalMaxPooling2d({})),
  ZeroPadding2D: through(
    layers.layers.zeroPadding2d({
      padding: [
        [1, 2],
        [3, 0],
      ],
    }),
  ),
  Cropping2D: through(
    layers.layers.cropping2D({
      cropping: [
        [1, 2],
        [3, 0],
      ],
    }),
  ),
  "UpSampling2D nearest": through(layers.layers.upSampling2d({ size: [2, 3] })),
  BatchNormalization: through(layers.layers.batchNormalization({ epsilon: 0.01 })),
  "BatchNormalization without scale and center": through(
    layers.layers.batchNormalization({ scale: false, center: false }),
  ),
  "BatchNormalization of a vector": through(
    layers.layers.flatten(),
    layers.layers.batchNormalization(),
  ),
  LayerNormalization: through(layers.layers.layerNormalization()),
  Rescaling: through(layers.layers.rescaling({ scale: 2, offset: -1 })),
  ReLU: through(
    layers.layers.rescaling({ scale: 20, offset: -9 }),
    layers.layers.reLU({ maxValue: 6 }),
  ),
  LeakyReLU: through(
    layers.layers.rescaling({ scale: 2, offset: -1 }),
    layers.layers.leakyReLU({ alpha: 0.1 }),
  ),
  ELU: through(layers.layers.rescaling({ scale: 2, offset: -1 }), layers.layers.elu()),
  PReLU: through(layers.layers.rescaling({ scale: 2, offset: -1 }), layers.layers.prelu()),
  Softmax: through(layers.layers.softmax({ axis: -1 })),
  Flatten: through(layers.layers.flatten()),
  Reshape: through(
    layers.layers.reshape({ targetShape: [7, 28, 3] }),
    conv2d({ filters: 2, kernelSize: 3 }),
  ),
  "Reshape to rows": through(layers.layers.reshape({ targetShape: [98, 6] }), dense({ units: 2 })),
  Permute: through(layers.layers.permute({ dims: [3, 1, 2] })),
  "Dense of an image": through(dense({ units: 4, activation: "relu" })),
  "Dense of a vector": through(layers.layers.flatten(), dense({ units: 9, activation: "softmax" })),
  Add: merge(layers.layers.add()),
  Multiply: merge(layers.layers.multiply()),
  Average: merge(layers.layers.average()),
  Maximum: merge(layers.layers.maximum()),
  Minimum: merge(layers.layers.minimum()),
  Concatenate: merge(layers.layers.concatenate()),
  "Concatenate along rows": two(layers.layers.concatenate({ axis: 1 })),
  Dropout: through(layers.layers.dropout({ rate: 0.5 })),

  GaussianDropout: through(layers.layers.gaussianDropout({ rate: 0.5 })),
  GaussianNoise: through(layers.layers.gaussianNoise({ stddev: 1 })),
  AlphaDropout: through(layers.layers.alphaDropout({ rate: 0.5 })),
}

const kinds = [
  ...(["elu", "hardSigmoid", "linear", "relu", "relu6", "selu", "sigmoid", "softmax"] as const),
  ...(["softplus", "softsign", "tanh", "swish", "mish", "gelu"] as const),
]

const modelOf = (add: Add) => {
  const input = layers.input({ shape: [224, 224, 3] })
  const small = through(layers.layers.averagePooling2d({ poolSize: 16 }))(input)
  const output = add(small)
  const end = output.shape.length === 2 ? output : through(layers.layers.flatten())(output)
  return seeded(layers.model({ inputs: input, outputs: end }))
}

describe("a converted layer agrees with TensorFlow.js to 1e-5:", () => {
  for (const [name, add] of Object.entries(cases)) it(name, () => expectAgreement(modelOf(add)))
  for (const kind of kinds) {
    const signed = layers.layers.rescaling({ scale: 8, offset: -4, name: `signed_${kind}` })
    it(`Activation ${kind}`, () =>
      expectAgreement(modelOf(through(signed, activation({ activation: kind })))))
  }
})

describe("a network of TensorFlow.js", () => {
  it("may be a nested Sequential model", () => {
    const inner = layers.sequential({
      layers: [
        conv2d({ inputShape: [14, 14, 3], filters: 4, kernelSize: 3, activation: "relu" }),
        layers.layers.batchNormalization(),
      ],
    })
    return expectAgreement(modelOf(through(inner, conv2d({ filters: 2, kernelSize: 3 }))))
  })

  for (const [packed, tolerance] of [
    ["float16", 2e-3],
    ["uint8", 2e-2],
  ] as const) {
    it(`may have weights quantized as ${packed}`, async () => {
      const model = modelOf(
        through(layers.layers.flatten(), dense({ units: 5, activation: "softmax" })),
      )
      const { values } = await runNetwork(readTfjs(await write(model, packed)))
      const off = difference(values, predict(model))
      expect(off).toBeLessThan(tolerance)
      expect(off).toBeGreaterThan(0)
    })
  }
})

describe("a MobileNetV2 with random weights", () => {
  it("agrees with TensorFlow.js to 1e-5", async () => {
    const model = mobileNet()
    const { values, converted } = await runNetwork(readTfjs(await write(model)))
    expect(converted.parameters).toBe(2_306_662)
    expect(difference(values, predict(model))).toBeLessThan(1e-5)
  })
})
