/** Scripted predictions, with the built page. */
import type { IncomingMessage, ServerResponse } from "node:http"
import sharp from "sharp"
import type { ModelInfo } from "#schemas/plant-disease/model.ts"
import { listen } from "../served.ts"

export const demo_model: ModelInfo = {
  name: "demo",
  format: "tfjs",
  sha256: "0123456789abcdef".repeat(4),
  bytes: 400_000,
  parameters: 93_456,
  is_demo: true,
  loaded_at: "2026-11-20T22:00:00.000Z",
  classes: ["DemoOak___healthy", "DemoOak___leaf_spot", "Demo_not_a_leaf"],
}

export const real_model: ModelInfo = {
  ...demo_model,
  name: "plant_disease_prediction_model",
  format: "keras-h5",
  is_demo: false,
  parameters: 47_805_158,
  classes: [
    "Apple___Apple_scab",
    "Corn_(maize)___Common_rust_",
    "Pepper,_bell___Bacterial_spot",
    "Tomato___Late_blight",
    "Tomato___Spider_mites Two-spotted_spider_mite",
    "Tomato___healthy",
  ],
}

/** A photo of a green leaf. */
export const photo = (kind: "jpeg" | "png" = "jpeg", width = 320, height = 240): Promise<Buffer> =>
  sharp({ create: { width, height, channels: 3, background: { r: 70, g: 120, b: 50 } } })
    .toFormat(kind)
    .toBuffer()

/** Stored sideways: with its orientation applied, red is above and green below. */
export const turned = (kind: "jpeg" | "png"): Promise<Buffer> => {
  const [width, height, channels] = [320, 240, 3] as const
  const green = { create: { width: width / 2, height, channels, background: "#00c000" } }
  return sharp({ create: { width, height, channels, background: "#c00000" } })
    .composite([{ input: green, left: width / 2, top: 0 }])
    .withMetadata({ orientation: 6 })
    .toFormat(kind)
    .toBuffer()
}

const heat = () =>
  sharp({ create: { width: 224, height: 224, channels: 3, background: { r: 240, g: 40, b: 0 } } })
    .png()
    .toBuffer()

/** The contents of one request. */
export interface Asked {
  readonly query: string
  readonly file_name: string
  readonly type: string
  readonly fields: number
}

export type PlantAnswer = (response: ServerResponse, request: Asked) => void

export const json = (response: ServerResponse, status: number, body: object) =>
  response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(body))

const blight = [
  { class: "Tomato___Late_blight", probability: 0.9312 },
  { class: "Tomato___Spider_mites Two-spotted_spider_mite", probability: 0.0511 },
  { class: "Corn_(maize)___Common_rust_", probability: 0.012 },
  { class: "Pepper,_bell___Bacterial_spot", probability: 0.0053 },
  { class: "Apple___Apple_scab", probability: 0.0004 },
]

/** Predicts late blight, with alternatives and a heat map if requested. */
export const blightedBy =
  (auto_orient: boolean): PlantAnswer =>
  (response, { query }) => {
    const prediction = "Tomato___Late_blight"
    if (!query.includes("explain=heatmap")) {
      json(response, 200, { prediction, predictions: blight })
      return
    }
    void heat().then((png) => {
      const heatmap = `data:image/png;base64,${png.toString("base64")}`
      json(response, 200, { prediction, heatmap, auto_orient })
    })
  }

export const blighted = blightedBy(false)

export const refusing =
  (status: number, error: string): PlantAnswer =>
  (response) =>
    void json(response, status, { error })

const readForm = async (request: IncomingMessage, query: string): Promise<Asked> => {
  const chunks: Buffer[] = []
  for await (const chunk of request) chunks.push(Buffer.from(chunk))
  const headers = { "content-type": request.headers["content-type"] ?? "" }
  const form = await new Response(Buffer.concat(chunks), { headers }).formData()
  const file = form.get("file")
  const fields = [...form.keys()].length
  if (!(file instanceof File)) return { query, file_name: "", type: "", fields }
  return { query, file_name: file.name, type: file.type, fields }
}

export interface PlantServed {
  readonly origin: string
  /** If undefined, responds with 503, because there is no model. */
  model: ModelInfo | undefined
  answer: PlantAnswer
  readonly requests: Asked[]
  /** Maximum number of concurrent predictions seen. */
  at_once: number
  readonly close: () => Promise<void>
}

export const servePlants = async (): Promise<PlantServed> => {
  let under_way = 0
  const listening = await listen((request, response, url) => {
    if (url.pathname === "/predict/model") {
      const { model } = served
      json(response, model ? 200 : 503, model ?? { error: "The model file is missing." })
      return
    }
    under_way += 1
    served.at_once = Math.max(served.at_once, under_way)
    response.once("close", () => {
      under_way -= 1
    })
    void readForm(request, url.search).then((request) => {
      served.requests.push(request)
      served.answer(response, request)
    })
  })
  const served: PlantServed = {
    ...listening,
    model: real_model,
    answer: blighted,
    requests: [],
    at_once: 0,
  }
  return served
}
