/** The messages between the pool and its threads. Buffers are transferred, not copied. */
import { side } from "#schemas/image-side.ts"
import type { Pixels } from "./resample.ts"

/** Values of one image: 224 by 224 pixels in three channels. */
export const tensor_length = side * side * 3

/** The properties of a network that a thread needs. */
export interface Network {
  readonly onnx_path: string
  readonly input: {
    readonly name: string
    readonly layout: "NHWC" | "NCHW"
    /** Whether it rescales bytes itself. */
    readonly has_rescaling: boolean
  }
  readonly output: {
    readonly name: string
    readonly classes: number
    /** For `none` a softmax is applied; other outputs are probabilities already. */
    readonly activation: "softmax" | "sigmoid" | "none"
    /** Whether the output is one number, the probability of the second class. */
    readonly is_single?: boolean
  }
}

/** The range that bytes are scaled to. */
export type Scale = "0..1" | "-1..1" | "0..255"

export interface ThreadOptions {
  readonly network: Network
  /** ONNX Runtime's threads for one run; 0 if this thread only prepares images. */
  readonly session_threads: number
  readonly batch_max: number
  readonly resize: "bicubic" | "bilinear" | "nearest" | "fast"
  readonly scale: Scale
  readonly auto_orient: boolean
  readonly pixels_max: number
}

/**
 * One input of the network: a tensor float32[224, 224, 3], or RGB bytes that the thread scales.
 * Bytes take a quarter of the memory.
 */
export type Input = Float32Array | Uint8Array

export type Task =
  /** Decodes and resizes a file; if `runs`, also runs the network on it. */
  | { readonly kind: "prepare"; readonly image: Uint8Array; readonly runs: boolean }
  | { readonly kind: "infer"; readonly inputs: ReadonlyArray<Input> }
  /** Runs the network on the image with each of the squares `from` to `to` occluded. */
  | {
      readonly kind: "occlude"
      readonly rgb: Uint8Array
      readonly from: number
      readonly to: number
    }
  /** Renders the heatmap over the image as PNG. */
  | { readonly kind: "heatmap"; readonly rgb: Uint8Array; readonly drops: Float32Array }

/** The image in a file. */
interface ImageInfo {
  readonly width: Pixels["width"]
  readonly height: Pixels["height"]
  /** SHA-256 of the file, in hex. */
  readonly sha256: string
}

export interface Prepared extends ImageInfo {
  readonly kind: "prepared"
  /** 224 by 224 pixels. */
  readonly rgb: Uint8Array
}

export interface Predicted extends ImageInfo {
  readonly kind: "predicted"
  /** Probabilities, or an error. */
  readonly row: Float32Array | string
}

export type TaskResult =
  | Prepared
  | Predicted
  /** One row of probabilities, or an error, per input. */
  | { readonly kind: "inferred"; readonly outputs: ReadonlyArray<Float32Array | string> }
  | { readonly kind: "heatmap"; readonly png: Uint8Array }
  | {
      readonly kind: "refused"
      readonly problem: "type" | "size" | "content"
      readonly detail: string
    }
  | { readonly kind: "failed"; readonly detail: string }

/** A thread's first message. */
export type StartupMessage =
  /** The batch size of its session, at most `batch_max`; 0 without a session. */
  | { readonly kind: "ready"; readonly batch: number }
  | { readonly kind: "unusable"; readonly detail: string }

/** Occluded squares per row and per column. */
export const squares_across = 7
export const squares = squares_across * squares_across

/** The message that stops a thread. */
export const end = "end"
