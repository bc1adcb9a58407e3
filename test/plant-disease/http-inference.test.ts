/** The Open Inference Protocol over the same network. Source: issue 7; KServe, HTTP/REST. */
import { createHash } from "node:crypto"
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest"
import { until } from "../world/http.ts"
import { type Colour, length, pngs, rgb, side } from "./predicting.ts"
import { type Predicts, startPredicting } from "./served.ts"

let served: Predicts
beforeAll(async () => {
  served = await startPredicting({ plant: { batch_images_max: 3, image_bytes_max: 5000 } })
})
afterAll(() => served.stop())
afterEach(async () => {
  await served.facts()
  await until(() => served.inFlight() === 0)
})

const sha256 = "c".repeat(64)

/** An image of one colour as network input, rounded to two digits. */
const numbersOf = (colour: Colour) => {
  const [red, green, blue] = rgb[colour].map((byte) => Math.round(byte / 2.55) / 100)
  return Array.from({ length: side * side }, () => [red, green, blue]).flat()
}
const tensor = (...colours: ReadonlyArray<Colour>) => ({
  name: "image",
  datatype: "FP32",
  shape: [colours.length, side, side, 3],
  data: colours.flatMap(numbersOf),
})
const files = (...all: ReadonlyArray<Uint8Array>) => ({
  name: "image",
  datatype: "BYTES",
  shape: [all.length],
  data: all.map((bytes) => Buffer.from(bytes).toString("base64")),
})

const infer = (body: unknown, headers: Record<string, string> = {}, name = "colours") =>
  served.fetch(`/v2/models/${name}/infer`, {
    method: "POST",
    headers: { "content-type": "application/json", ...headers },
    body: typeof body === "string" ? body : JSON.stringify(body),
  })

const refused = async (answer: Response, status: number, error: RegExp) => {
  const body = await answer.json()
  expect([answer.status, body]).toEqual([status, { error: expect.stringMatching(error) }])
  expect(await served.facts()).toEqual([])
}

describe("the metadata of server and model", () => {
  it.each([
    ["/v2", { name: "almanac", version: "1", extensions: [] }],
    ["/v2/health/live", { live: true }],
    ["/v2/health/ready", { ready: true }],
    ["/v2/models/colours/ready", { name: "colours", ready: true }],
    [
      "/v2/models/colours",
      {
        name: "colours",
        versions: [sha256],
        platform: "onnx_onnxv1",
        inputs: [{ name: "image", datatype: "FP32", shape: [-1, side, side, 3] }],
        outputs: [
          { name: "probabilities", datatype: "FP32", shape: [-1, 3] },
          { name: "class", datatype: "BYTES", shape: [-1] },
        ],
      },
    ],
  ])("%s", async (path, body) => {
    const answer = await served.fetch(path)
    expect([answer.status, await answer.json()]).toEqual([200, body])
    expect(answer.headers.get("x-model-sha256")).toBe(sha256)
  })

  it("is 404 of another name, 405 of another method, 404 of another path, as {error}", async () => {
    for (const path of ["/v2/models/other", "/v2/models/other/ready"]) {
      await refused(await served.fetch(path), 404, /named 'other'. The model is 'colours'/)
    }
    await refused(await infer({ inputs: [tensor("red")] }, {}, "other"), 404, /named 'other'/)
    await refused(await served.fetch("/v2/health/live", { method: "POST" }), 405, /GET/)
    await refused(await served.fetch("/v2/nothing"), 404, /No such path/)
  })
})

describe("a tensor", () => {
  it("is answered with probabilities and classes, and the request's id", async () => {
    const answer = await infer({ id: "seven", inputs: [tensor("blue", "red")] })
    const body = await answer.json()
    const { data } = body.outputs[0]
    expect([answer.status, body]).toEqual([
      200,
      {
        model_name: "colours",
        model_version: sha256,
        id: "seven",
        outputs: [
          { name: "probabilities", datatype: "FP32", shape: [2, 3], data: expect.any(Array) },
          { name: "class", datatype: "BYTES", shape: [2], data: ["blue", "red"] },
        ],
      },
    ])
    expect(data).toHaveLength(6)
    expect([data[2], data[3]]).toEqual([expect.closeTo(1, 2), expect.closeTo(1, 2)])
  })

  it("may be nested by its shape", async () => {
    const [red, green, blue] = rgb.green.map((byte) => byte / 255)
    const row = Array.from({ length: side }, () => [red, green, blue])
    const data = [Array.from({ length: side }, () => row)]
    const { outputs } = await (await infer({ inputs: [{ ...tensor("red"), data }] })).json()
    expect(outputs[1].data).toEqual(["green"])
  })

  it("has the outputs that are asked for", async () => {
    const body = { inputs: [tensor("red")], outputs: [{ name: "class" }] }
    const { outputs } = await (await infer(body)).json()
    expect(outputs).toEqual([{ name: "class", datatype: "BYTES", shape: [1], data: ["red"] }])
  })

  it("leaves a fact with the hash of its numbers", async () => {
    await infer({ inputs: [tensor("green")] })
    const bytes = Buffer.from(Float32Array.from(numbersOf("green")).buffer)
    const image_sha256 = createHash("sha256").update(bytes).digest("hex")
    const [fact, ...others] = await served.facts()
    expect(others).toEqual([])
    expect(fact).toMatchObject({ class: "green", image_sha256, image_bytes: length * 4 })
    expect(fact).toMatchObject({ model_sha256: sha256, probability: expect.closeTo(1, 2) })
  })
})

describe("images in base64", () => {
  it("are predicted as by /predict, a fact each", async () => {
    const answer = await infer({ inputs: [files(pngs.green, pngs.blue)] })
    const { outputs } = await answer.json()
    expect(outputs[1].data).toEqual(["green", "blue"])
    expect(outputs[0].shape).toEqual([2, 3])
    const sizes = (await served.facts()).map(({ image_bytes }) => image_bytes)
    expect(sizes).toEqual([pngs.green.length, pngs.blue.length])
  })

  it("fail together, with the status of the one that fails", async () => {
    const svg = Buffer.from("<svg/>")
    await refused(
      await infer({ inputs: [files(pngs.green, svg)] }),
      415,
      /neither a JPEG nor a PNG/,
    )
    const cut = pngs.green.subarray(0, 60)
    await refused(await infer({ inputs: [files(cut)] }), 422, /cannot be decoded/)
    const large = Buffer.concat([pngs.green], 5001)
    await refused(await infer({ inputs: [files(large)] }), 413, /the maximum is 5000/)
  })
})

describe("400", () => {
  const image = tensor("red")
  it.each<readonly [string, unknown, RegExp]>([
    ["no JSON", "{", /is not JSON/],
    ["no inputs", {}, /does not follow the protocol/],
    ["two inputs", { inputs: [files(pngs.red), files(pngs.red)] }, /exactly one input/],
    ["another input", { inputs: [{ ...files(pngs.red), name: "x" }] }, /exactly one input/],
    ["another datatype", { inputs: [{ ...image, datatype: "UINT8" }] }, /FP32 or BYTES, not UINT8/],
    ["another shape", { inputs: [{ ...image, shape: [1, 3, 224, 224] }] }, /shape of FP32/],
    ["no images", { inputs: [{ ...image, shape: [0, 224, 224, 3], data: [] }] }, /1 to 3/],
    ["too many", { inputs: [files(...Array.from({ length: 4 }, () => pngs.red))] }, /1 to 3/],
    ["too few numbers", { inputs: [{ ...image, data: [1, 2] }] }, /150528 numbers/],
    [
      "what is no number",
      { inputs: [{ ...image, data: [...image.data.slice(1), "1"] }] },
      /numbers/,
    ],
    [
      "too large a number",
      { inputs: [{ ...image, data: [...image.data.slice(1), 1e39] }] },
      /numbers/,
    ],
    ["no base64", { inputs: [{ ...files(pngs.red), data: ["?"] }] }, /base64 strings/],
    ["another output", { inputs: [image], outputs: [{ name: "x" }] }, /probabilities or class/],
    [
      "binary data",
      { inputs: [image], parameters: { binary_data_output: true } },
      /Binary tensor data is not supported/,
    ],
  ])("is %s", async (_, body, error) => {
    await refused(await infer(body), 400, error)
  })

  it("is binary data by its headers", async () => {
    const known = { "inference-header-content-length": "2" }
    await refused(await infer("{}", known), 400, /Binary tensor data is not supported/)
    const binary = { "content-type": "application/octet-stream" }
    await refused(await infer("{}", binary), 400, /Binary tensor data is not supported/)
  })
})

describe("other refusals", () => {
  it("are 413 above 4 MiB, and 415 of another type", async () => {
    const body = JSON.stringify({ id: "x".repeat(4 * 2 ** 20), inputs: [] })
    await refused(await infer(body), 413, /larger than 4194304 bytes/)
    await refused(await infer("{}", { "content-type": "text/plain" }), 415, /application\/json/)
  })

  it("is 503 with when to come again where the queue is full", async () => {
    const small = await startPredicting({ plant: { queue_max: 1, workers: 1 } })
    const body = JSON.stringify({ inputs: [files(pngs.red, pngs.red, pngs.red, pngs.red)] })
    const headers = { "content-type": "application/json" }
    const answers = await Promise.all(
      Array.from({ length: 6 }, () =>
        small.fetch("/v2/models/colours/infer", { method: "POST", headers, body }),
      ),
    )
    const full = answers.find(({ status }) => status === 503)
    expect(await full?.json()).toEqual({ error: "Too many images are waiting." })
    expect(full?.headers.get("retry-after")).toMatch(/^\d+$/)
    await small.stop()
  })
})
