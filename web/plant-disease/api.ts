/**
 * What plant disease prediction answers, as the page reads it. The page imports nothing of the
 * server's; a test holds these shapes equal to its schemas. Source: document 3 §2 C.
 */

export interface ModelInfo {
  readonly name: string
  readonly format: "keras-h5" | "keras" | "onnx" | "tfjs"
  readonly sha256: string
  readonly bytes: number
  readonly parameters: number | null
  readonly classes: readonly string[]
  readonly is_demo: boolean
  readonly loaded_at: string
}

export interface Likely {
  readonly class: string
  /** 0 to 1. */
  readonly probability: number
}

export interface Prediction {
  readonly prediction: string
  /** With `top_k`: the likeliest first. */
  readonly predictions?: readonly Likely[]
  /** With `explain=heatmap`: "data:image/png;base64,..." of 224 by 224 pixels. */
  readonly heatmap?: string
  /** With `heatmap`: whether the network, and so the map, has the photo upright by its EXIF. */
  readonly auto_orient?: boolean
}

export type Explanation = Required<Omit<Prediction, "predictions">>
