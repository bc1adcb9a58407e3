/** Networks that cannot be converted are rejected in one line, with advice. */
import { mkdirSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { describe, expect, it } from "vitest"
import { readConfig } from "../keras/config.ts"
import { convertKeras } from "../keras/convert.ts"
import type { Network } from "../network.ts"
import { readTfjs } from "../tfjs.ts"
import { weightOf } from "../weight.ts"
import { newPath, runNetwork } from "./run-network.ts"

const layer = (class_name: string, config: object = {}) => ({
  class_name,
  config: { name: `my_${class_name.toLowerCase()}`, ...config },
})

const input = layer("InputLayer", { batch_input_shape: [null, 224, 224, 3] })
const end = layer("Dense", { units: 2, activation: "softmax" })
const pooled = layer("GlobalAveragePooling2D")
const kernel = weightOf(Float32Array.of(1, 2, 3, 4, 5, 6), [3, 2])

const network = (configuration: unknown, weight: Network["weight"] = () => kernel): Network => ({
  model: readConfig(configuration),
  is_keras_3: false,
  weight,
  close: () => undefined,
})

const sequence = (...layers: ReadonlyArray<object>) => ({
  class_name: "Sequential",
  config: { name: "s", layers },
})

const errorOf = (act: () => unknown): string => {
  try {
    act()
  } catch (error) {
    // The tests check its shape.
    return (error as { readonly detail?: string }).detail ?? String(error)
  }
  return "accepted"
}

const conversionError = (...layers: ReadonlyArray<object>) =>
  errorOf(() => convertKeras(network(sequence(...layers))))

const advice = /export ONNX and set plant\.model to it\.$/

describe("a network with unsupported layers", () => {
  it("is rejected in one line that lists them all", () => {
    const inner = sequence(layer("MultiHeadAttention"))
    const detail = conversionError(input, layer("Lambda"), inner, layer("KerasLayer"), pooled, end)
    expect(detail).toContain("my_lambda (Lambda), my_multiheadattention (MultiHeadAttention)")
    expect(detail).toContain("my_keraslayer (KerasLayer)")
    expect(detail).toMatch(advice)
    expect(detail).not.toContain("\n")
  })

  it("is rejected with an unsupported activation", () => {
    const detail = conversionError(input, layer("Conv2D", { activation: "my_own" }), pooled, end)
    expect(detail).toContain('my_conv2d (Conv2D) with the activation "my_own"')
    expect(detail).toMatch(advice)
  })

  it("is rejected with channels first", () => {
    const detail = conversionError(
      input,
      layer("Conv2D", { data_format: "channels_first" }),
      pooled,
      end,
    )
    expect(detail).toContain("my_conv2d (Conv2D) with channels first")
  })

  it("is rejected with an unsupported function", () => {
    const detail = conversionError(
      input,
      layer("TFOpLambda", { function: "math.log" }),
      pooled,
      end,
    )
    expect(detail).toContain('my_tfoplambda (TFOpLambda) with the function "math.log"')
  })

  it("lists at most a dozen, without control characters", () => {
    const many = Array.from({ length: 30 }, () => layer("La\u001bmbda"))
    const detail = conversionError(input, ...many, pooled, end)
    expect(detail).toContain("and 18 more")
    expect(detail).not.toMatch(/\p{Cc}/u)
  })
})

describe("a network with another input or output", () => {
  const conversionOf = (...sides: ReadonlyArray<number | null>) =>
    conversionError(layer("InputLayer", { batch_input_shape: [null, ...sides] }), pooled, end)

  it("that expects images of another size is rejected", () => {
    expect(conversionOf(299, 299, 3)).toMatch(/takes tensors of 299 x 299 x 3, .* 224 x 224 x 3/)
    expect(conversionOf(224, 224, 1)).toContain("224 x 224 x 1")
    expect(conversionOf(3, 224, 224)).toContain("3 x 224 x 224")
    expect(conversionOf(150_528)).toContain("150528")
  })

  it("that accepts images of any size is accepted", () => {
    expect(conversionOf(null, null, 3)).not.toContain("takes tensors")
  })

  it("that ends in an image is rejected", () => {
    expect(conversionError(input, layer("Activation", { activation: "relu" }))).toContain(
      "ends in a tensor of [224, 224, 3], not in classes",
    )
  })

  it("of another class is rejected", () => {
    expect(errorOf(() => readConfig({ class_name: "MyModel", config: {} }))).toContain(
      "the class MyModel, but only Sequential and Functional models",
    )
  })

  it("without a weight, or with one of another shape, is rejected", () => {
    const model = sequence(input, pooled, end)
    const without = errorOf(() => convertKeras(network(model, () => undefined)))
    expect(without).toBe("The file contains no kernel for the layer my_dense (Dense).")
    const other = weightOf(new Float32Array(8), [4, 2])
    const wrong = errorOf(() => convertKeras(network(model, () => other)))
    expect(wrong).toBe("The kernel of the layer my_dense (Dense) has the shape [4, 2].")
  })
})

/** A Keras 2 graph: each link is [name, node, tensor, arguments]. */
const preprocessed = {
  class_name: "Functional",
  config: {
    name: "m",
    layers: [
      { ...input, name: "input", inbound_nodes: [] },
      {
        ...layer("TFOpLambda", { name: "div", function: "math.truediv" }),
        name: "div",
        inbound_nodes: [["input", 0, 0, { y: 0.25, name: null }]],
      },
      {
        ...layer("TFOpLambda", { name: "sub", function: "math.subtract" }),
        name: "sub",
        inbound_nodes: [["_CONSTANT_VALUE", -1, 5, { y: ["div", 0, 0], name: null }]],
      },
      { ...layer("GlobalMaxPooling2D"), name: "pool", inbound_nodes: [[["sub", 0, 0, {}]]] },
    ],
    input_layers: [["input", 0, 0]],
    output_layers: [["pool", 0, 0]],
  },
}

describe("arithmetic on tensors in Keras 2", () => {
  it("is computed", async () => {
    const { values } = await runNetwork(network(preprocessed))
    // The minimum of each channel is 0.
    expect([...values]).toEqual([5, 5, 5])
  })
})

describe("a model.json that is rejected", () => {
  const read = (json: object, files: Readonly<Record<string, Buffer>> = {}) => {
    const folder = newPath("tfjs")
    mkdirSync(folder)
    writeFileSync(join(folder, "model.json"), JSON.stringify(json))
    for (const [name, bytes] of Object.entries(files)) writeFileSync(join(folder, name), bytes)
    return errorOf(() => readTfjs(join(folder, "model.json")))
  }
  const modelTopology = { model_config: sequence(input, pooled, end) }
  const weights = [{ name: "my_dense/kernel", shape: [3, 2], dtype: "float32" }]

  it("is a graph model", () => {
    expect(read({ format: "graph-model" })).toMatch(/is a tfjs graph model.*export ONNX/)
  })

  it("contains no model", () => {
    expect(read({})).toContain("contains no layers model")
  })

  it("names a file in another folder", () => {
    for (const path of ["../weights.bin", "/etc/passwd", "..", "a/b.bin"]) {
      const detail = read({ modelTopology, weightsManifest: [{ paths: [path], weights }] })
      expect(detail).toContain("not in its folder")
    }
  })

  it("has truncated weights", () => {
    const weightsManifest = [{ paths: ["w.bin"], weights }]
    expect(read({ modelTopology, weightsManifest }, { "w.bin": Buffer.alloc(24) })).toBe("accepted")
    const short = read({ modelTopology, weightsManifest }, { "w.bin": Buffer.alloc(23) })
    expect(short).toContain("not have the length given in model.json")
  })
})
