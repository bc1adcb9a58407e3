/** Trains a small image classifier, on drawn leaves or on a folder of images. */
export { demo_classes, drawLeaf, not_a_leaf } from "./leaves/leaf.ts"
export { drawNegative, negative_kinds } from "./leaves/negative.ts"
export { randomOf, seedOf } from "./leaves/noise.ts"
export { areaUnderCurve } from "./score.ts"
export { type Training, type TrainingProgress, training } from "./training.ts"
