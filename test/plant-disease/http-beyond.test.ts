/** Responses beyond the documented one, and the recorded facts. Source: issue 7. */
import { createHash } from "node:crypto"
import { Schema } from "effect"
import sharp from "sharp"
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest"
import { likeliest } from "#gateway/plant-disease/prediction.ts"
import { ModelInfo } from "#schemas/plant-disease/model.ts"
import { PredictionFact } from "#schemas/plant-disease/prediction.ts"
import { settings_by_path } from "#schemas/settings.ts"
import { until } from "../world/http.ts"
import { pngs } from "./predicting.ts"
import { type File, formOf, type Predicts, startPredicting } from "./served.ts"

const image_bytes_max = 2 ** 20
const batch_images_max = 12

let served: Predicts
beforeAll(async () => {
  served = await startPredicting({ plant: { image_bytes_max, batch_images_max } })
})
afterAll(() => served.stop())
afterEach(async () => {
  await served.facts()
  await until(() => served.inFlight() === 0)
})

const form = (colour: keyof typeof pngs = "green") => formOf({ bytes: pngs[colour] })
const hashOf = (bytes: Uint8Array) => createHash("sha256").update(bytes).digest("hex")

describe("?top_k", () => {
  it("adds so many of the likeliest classes, the likeliest first", async () => {
    // The page requests five, regardless of the number of classes.
    for (const count of [1, 2, 3, 5]) {
      const answer = await served.post(form(), `/predict?top_k=${count}`)
      const { prediction, predictions, ...others } = await answer.json()
      expect(others).toEqual({})
      expect(prediction).toBe("green")
      expect(predictions).toHaveLength(Math.min(count, 3))
      expect(predictions[0]).toEqual({ class: "green", probability: expect.closeTo(1, 2) })
      const probabilities = predictions.map(
        ({ probability }: { probability: number }) => probability,
      )
      expect(probabilities).toEqual(probabilities.toSorted((a: number, b: number) => b - a))
    }
  })

  it("has the class of lower index first where two are as likely", () => {
    const names = ["a", "b", "c", "d"]
    const order = likeliest(Float32Array.of(0.25, 0.3, 0.25, 0.2), names, 4)
    expect(order.map((place) => place.class)).toEqual(["b", "a", "c", "d"])
    expect(likeliest(Float32Array.of(0, 0, 0, 0), names, 2).map(({ index }) => index)).toEqual([
      0, 1,
    ])
  })

  it.each(["0", "-1", "1.5", "many", "", "01", "1&top_k=2", "1e0"])("is 400 for %s", async (k) => {
    const answer = await served.post(form(), `/predict?top_k=${k}`)
    expect([answer.status, await answer.json()]).toEqual([
      400,
      { error: "The parameter 'top_k' must be a positive integer, given once." },
    ])
    expect(await served.facts()).toEqual([])
  })
})

describe("?explain=heatmap", () => {
  const looked = async (png: Uint8Array) => {
    const { format, width, height } = await sharp(png).metadata()
    expect({ format, width, height }).toEqual({ format: "png", width: 224, height: 224 })
  }

  it("adds a PNG as a data URL, next to the class and its alternatives", async () => {
    for (const [query, names] of [
      ["explain=heatmap", ["auto_orient", "heatmap", "prediction"]],
      ["top_k=2&explain=heatmap", ["auto_orient", "heatmap", "prediction", "predictions"]],
    ] as const) {
      const answer = await served.post(form(), `/predict?${query}`)
      const body = await answer.json()
      expect(Object.keys(body).sort()).toEqual(names)
      const [, base64 = ""] = /^data:image\/png;base64,([\d+/A-Za-z]+=*)$/.exec(body.heatmap) ?? []
      await looked(Buffer.from(base64, "base64"))
    }
  })

  it("is the PNG itself where that is accepted and JSON is not", async () => {
    const headers = { accept: "image/png" }
    const answer = await served.post(form(), "/predict?explain=heatmap", { headers })
    expect(answer.headers.get("content-type")).toBe("image/png")
    expect(answer.headers.get("x-model-sha256")).toBe("c".repeat(64))
    await looked(new Uint8Array(await answer.arrayBuffer()))
    for (const accept of ["application/json", "*/*", "image/png, application/json"]) {
      const json = await served.post(form(), "/predict?explain=heatmap", { headers: { accept } })
      expect(json.headers.get("content-type")).toBe("application/json")
    }
    // Without an explanation there is no image to return.
    const plain = await served.post(form(), "/predict", { headers })
    expect(await plain.json()).toEqual({ prediction: "green" })
  })

  it.each([false, true])("reports if its map is rotated by EXIF: %s", async (auto_orient) => {
    const one = await startPredicting({ plant: { auto_orient } })
    const right = { create: { width: 112, height: 224, channels: 3, background: "#00f" } } as const
    const image = sharp({ create: { ...right.create, width: 224, background: "#0f0" } })
      .composite([{ input: right, left: 112, top: 0 }])
      .withMetadata({ orientation: 6 })
    const posted = formOf({ bytes: await image.png().toBuffer() })
    const body = await (await one.post(posted, "/predict?explain=heatmap")).json()
    const png = Buffer.from(body.heatmap.split(",")[1], "base64")
    const { data } = await sharp(png).raw().toBuffer({ resolveWithObject: true })
    // The top right is blue as stored, and green after the rotation.
    const is_turned = (data[200 * 3 + 2] ?? 0) === 0
    expect([body.auto_orient, is_turned]).toEqual([auto_orient, auto_orient])
    await one.stop()
  })

  it("leaves one fact", async () => {
    await served.post(form(), "/predict?explain=heatmap")
    expect(await served.facts()).toHaveLength(1)
  })

  it.each(["gradcam", "", "heatmap&explain=heatmap"])("is 400 for %s", async (given) => {
    const answer = await served.post(form(), `/predict?explain=${given}`)
    expect([answer.status, await answer.json()]).toEqual([
      400,
      { error: "The parameter 'explain' must be 'heatmap', given once." },
    ])
  })
})

describe("GET /predict/model", () => {
  it("returns name, form, hash, size, weights and classes", async () => {
    const answer = await served.fetch("/predict/model")
    expect(answer.status).toBe(200)
    const model = await answer.json()
    expect(Schema.is(ModelInfo)(model)).toBe(true)
    expect(model).toEqual({
      name: "colours",
      format: "onnx",
      sha256: "c".repeat(64),
      bytes: 1,
      parameters: 12,
      classes: ["red", "green", "blue"],
      is_demo: false,
      loaded_at: expect.any(String),
    })
  })

  it("is 405 for others than GET and HEAD", async () => {
    const answer = await served.fetch("/predict/model", { method: "DELETE" })
    expect([answer.status, await answer.json()]).toEqual([405, { error: expect.any(String) }])
  })
})

describe("POST /predict/batch", () => {
  const batch = (...files: ReadonlyArray<File>) => served.post(formOf(...files), "/predict/batch")

  it("answers each image in the order of the form", async () => {
    const colours = ["red", "blue", "green", "blue", "red", "green", "green", "red"] as const
    const files = colours.map((colour, n) => ({ bytes: pngs[colour], name: `${n}.png` }))
    const answer = await batch(...files)
    expect(answer.status).toBe(200)
    expect(await answer.json()).toEqual({
      predictions: colours.map((prediction, n) => ({ name: `${n}.png`, prediction })),
    })
    expect(answer.headers.get("x-model-sha256")).toBe("c".repeat(64))
  })

  it("fails each file alone, for any fault", async () => {
    const answer = await batch(
      { bytes: pngs.red, name: "a.png" },
      { bytes: pngs.red, name: "b.gif" },
      { bytes: pngs.red, name: "c.png", type: "text/plain" },
      { bytes: Buffer.from("text"), name: "d.png" },
      { bytes: pngs.red.subarray(0, 60), name: "e.png" },
      { bytes: Buffer.concat([pngs.red], image_bytes_max + 1), name: "f.png" },
      { bytes: pngs.blue, name: "g.png" },
    )
    expect(answer.status).toBe(200)
    const { predictions } = await answer.json()
    expect(predictions).toEqual([
      { name: "a.png", prediction: "red" },
      { name: "b.gif", error: expect.stringContaining("ends in .gif") },
      { name: "c.png", error: expect.stringContaining("type is text/plain") },
      { name: "d.png", error: expect.stringContaining("neither a JPEG nor a PNG") },
      { name: "e.png", error: expect.stringContaining("cannot be decoded") },
      { name: "f.png", error: "The image is larger than 1 MiB." },
      { name: "g.png", prediction: "blue" },
    ])
    expect((await served.facts()).map((fact) => fact.class)).toEqual(["red", "blue"])
  })

  it("takes as many as the setting says, each of the largest size, and no more", async () => {
    const bytes = Buffer.concat([pngs.red], image_bytes_max)
    const most = Array.from({ length: batch_images_max }, () => ({ bytes }))
    const { predictions } = await (await batch(...most)).json()
    expect(predictions).toHaveLength(batch_images_max)
    await served.facts()
    const answer = await batch(...most, { bytes: pngs.red })
    expect(answer.status === 400 || answer.status === 413).toBe(true)
    const small = Array.from({ length: batch_images_max + 1 }, () => ({ bytes: pngs.red }))
    const error = "The form must have 1 to 12 images, as files in the field 'file'."
    const refused = await batch(...small)
    expect([refused.status, await refused.json()]).toEqual([400, { error }])
    expect(await (await batch()).json()).toEqual({ error })
    expect(await served.facts()).toEqual([])
  })

  it("takes 32 unless the setting says otherwise", () => {
    expect(settings_by_path.get("plant.batch_images_max")?.initial).toBe(32)
  })

  it("is 415 for what is no form, 400 for one without its end, and leaves no fact", async () => {
    const headers = { "content-type": "application/json" }
    const json = await served.fetch("/predict/batch", { method: "POST", headers, body: "{}" })
    expect(json.status).toBe(415)
    const type = { "content-type": "multipart/form-data; boundary=b" }
    const head = '--b\r\nContent-Disposition: form-data; name="file"; filename="a.png"\r\n\r\n'
    const body = Uint8Array.from(
      Buffer.concat([Buffer.from(head), pngs.red, Buffer.from("\r\n--b\r\n")]),
    )
    const cut = await served.fetch("/predict/batch", { method: "POST", headers: type, body })
    expect([cut.status, await cut.json()]).toEqual([400, { error: expect.any(String) }])
    expect(await served.facts()).toEqual([])
  })
})

describe("a prediction leaves one fact", () => {
  it("with the class, the hashes and who asked, and without the image", async () => {
    const before = new Date().toISOString()
    const headers = { "x-request-id": "garden-7" }
    const answer = await served.post(form("blue"), "/predict", { headers })
    const facts = await served.facts()
    expect(facts).toEqual([
      {
        at: expect.any(String),
        class: "blue",
        probability: expect.closeTo(1, 2),
        image_sha256: hashOf(pngs.blue),
        image_bytes: pngs.blue.length,
        model_sha256: "c".repeat(64),
        milliseconds: expect.any(Number),
        actor: "anonymous",
        request_id: answer.headers.get("x-request-id"),
        correlation_id: "garden-7",
      },
    ])
    expect(Schema.is(PredictionFact)(facts[0])).toBe(true)
    const { at = "" } = facts[0] ?? {}
    expect(at >= before && at <= new Date().toISOString()).toBe(true)
  })

  it("each of a batch, by the same request", async () => {
    const files = [{ bytes: pngs.red }, { bytes: pngs.green }]
    const answer = await served.post(formOf(...files), "/predict/batch")
    const request_id = answer.headers.get("x-request-id")
    expect(await served.facts()).toMatchObject([
      { class: "red", image_sha256: hashOf(pngs.red), request_id },
      { class: "green", image_sha256: hashOf(pngs.green), request_id },
    ])
  })

  it("none if the client left before the response", async () => {
    const leaving = new AbortController()
    const answers = Array.from({ length: 8 }, () =>
      served
        .post(form(), "/predict?explain=heatmap", { signal: leaving.signal })
        .catch(() => "gone"),
    )
    // Not all at once: four explanations are in flight, and the others are rejected.
    await until(() => served.inFlight() > 0)
    leaving.abort()
    await Promise.all(answers)
    await until(() => served.inFlight() === 0)
    expect(await served.facts()).toEqual([])
  })
})
