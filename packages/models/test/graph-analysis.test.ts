/** Whether a converted graph expects bytes, and whether its outputs are probabilities. */
import { describe, expect, it } from "vitest"
import { expectsBytes, sumsToOne } from "../graph-analysis.ts"
import { graphBuilder } from "../graph-builder.ts"

const port = { name: "input", shape: ["N", 224, 224, 3] }

/** `image * 2` is ["Mul", 2]; a step without a constant is the first layer. */
type Step = readonly [type: string, ...constant: ReadonlyArray<number>]

const conv: Step = ["Conv"]
const div = (...by: ReadonlyArray<number>): Step => ["Div", ...by]
const mul = (...by: ReadonlyArray<number>): Step => ["Mul", ...by]

const isBytes = (...steps: ReadonlyArray<Step>) => {
  const graph = graphBuilder()
  const colours = graph.add("Transpose", ["input"])
  const shapeOf = ({ length }: ReadonlyArray<number>) => (length === 1 ? [] : [length, 1, 1])
  const end = steps.reduce((value, [type, ...numbers]) => {
    const constants = numbers.length === 0 ? [] : [graph.floats(numbers, shapeOf(numbers))]
    return graph.add(type, [value, ...constants])
  }, colours)
  return expectsBytes(graph.build(port, { name: end, shape: ["N", 3] }), "input")
}

describe("a network expects bytes", () => {
  const cases: ReadonlyArray<readonly [string, ReadonlyArray<Step>]> = [
    ["that multiplies by 1/255", [mul(1 / 255), ["Add", 0], conv]],
    ["that divides by 255", [div(255), conv]],
    ["that scales them to -1..1", [div(127.5), ["Sub", 1], conv]],
    ["that pads before it divides", [["Pad"], div(255), conv]],
    ["that centres them and divides by their deviation", [["Sub", 120], div(58, 57, 59), conv]],
    ["of EfficientNet, by two steps", [mul(1 / 255), ["Sub", 0.4], div(0.229, 0.224, 0.225), conv]],
  ]
  it.each(cases)("%s", (_, steps) => {
    expect(isBytes(...steps)).toBe(true)
  })
})

describe("a network expects 0..1", () => {
  const cases: ReadonlyArray<readonly [string, ReadonlyArray<Step>]> = [
    ["that does not scale its input", [conv]],
    ["that multiplies by 255 and then divides by 255", [mul(255), mul(1 / 255), conv]],
    ["that divides only after the first layer", [conv, div(255), conv]],
    ["that scales it to -1..1", [mul(2), ["Sub", 1], conv]],
    ["that divides by the deviation", [["Sub", 0.4], div(0.229, 0.224, 0.225), conv]],
    ["that only subtracts the mean", [["Sub", 120], conv]],
  ]
  it.each(cases)("%s", (_, steps) => {
    expect(isBytes(...steps)).toBe(false)
  })
})

describe("outputs are probabilities", () => {
  const graphOf = (make: (graph: ReturnType<typeof graphBuilder>) => string) => {
    const graph = graphBuilder()
    const end = graph.add("Identity", [make(graph)])
    return sumsToOne(graph.build(port, { name: end, shape: ["N", 3] }), end)
  }
  const head = (graph: ReturnType<typeof graphBuilder>) =>
    graph.add("Softmax", [graph.add("Gemm", ["input"])])

  it("after a softmax, also if they are reshaped", () => {
    expect(graphOf(head)).toBe(true)
    expect(graphOf((graph) => graph.add("Flatten", [head(graph)]))).toBe(true)
  })

  it("after a mean of several softmaxes, weighted or not", () => {
    const mean = (graph: ReturnType<typeof graphBuilder>, by: number) =>
      graph.add("Div", [graph.add("Add", [head(graph), head(graph)]), graph.floats([by])])
    expect(graphOf((graph) => mean(graph, 2))).toBe(true)
    expect(graphOf((graph) => mean(graph, 3))).toBe(false)
    const weighted = (graph: ReturnType<typeof graphBuilder>, one: number, other: number) =>
      graph.add("Add", [
        graph.add("Mul", [head(graph), graph.floats([one])]),
        graph.add("Mul", [head(graph), graph.floats([other])]),
      ])
    expect(graphOf((graph) => weighted(graph, 0.75, 0.25))).toBe(true)
    expect(graphOf((graph) => weighted(graph, 0.75, 0.75))).toBe(false)
  })

  it("after the mean of a softmax over all positions of an image", () => {
    const pooled = (type: string) =>
      graphOf((graph) => graph.add("Flatten", [graph.add(type, [head(graph)])]))
    expect(pooled("GlobalAveragePool")).toBe(true)
    expect(pooled("GlobalMaxPool")).toBe(false)
  })

  it("after nothing else", () => {
    expect(graphOf((graph) => graph.add("Gemm", ["input"]))).toBe(false)
    expect(graphOf((graph) => graph.add("Relu", [head(graph)]))).toBe(false)
    expect(graphOf((graph) => graph.add("Mul", [head(graph), head(graph)]))).toBe(false)
    expect(graphOf((graph) => graph.add("Add", [head(graph), graph.floats([0])]))).toBe(false)
  })
})
