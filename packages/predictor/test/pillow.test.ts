/** The same images as Pillow, to the last byte, where Pillow is there. */
import { agreementWithPillow } from "./pillow.ts"

agreementWithPillow({ is_required: false })
