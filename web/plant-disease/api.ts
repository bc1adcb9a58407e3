/**
 * The plant disease API's responses. The page imports no server code; a test compares these types
 * with the server's schemas. Source: document 3 §2 C.
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
  /** With `top_k`: the most likely classes, in descending order. */
  readonly predictions?: readonly Likely[]
  /** With `explain=heatmap`: "data:image/png;base64,..." of 224 by 224 pixels. */
  readonly heatmap?: string
  /**
   * With `heatmap`: whether the network, and thus the map, applies the photo's EXIF orientation.
   */
  readonly auto_orient?: boolean
}

export type Explanation = Required<Omit<Prediction, "predictions">>
