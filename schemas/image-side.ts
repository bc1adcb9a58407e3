/** Side of the image that the network sees, in pixels. Source: document 3 §1 C. */
export const side = 224
