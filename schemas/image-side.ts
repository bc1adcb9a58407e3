/** Side length of the network's input image, in pixels. Source: document 3 §1 C. */
export const side = 224
