import { is_all_required } from "../absent.ts"
import { agreementWithPandas } from "./pandas.ts"

agreementWithPandas({ is_required: is_all_required })
