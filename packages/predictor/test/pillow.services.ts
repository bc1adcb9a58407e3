/** The tests of pillow.test.ts, but failing if Pillow is missing. */
import { is_all_required } from "../../../test/world/programs/absent.ts"
import { agreementWithPillow } from "./pillow.ts"

agreementWithPillow({ is_required: is_all_required })
