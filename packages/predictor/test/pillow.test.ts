/** Compares images with Pillow, byte for byte; skipped if Pillow is not installed. */
import { agreementWithPillow } from "./pillow.ts"

agreementWithPillow({ is_required: false })
