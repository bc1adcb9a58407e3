import { agreementWithPandas } from "./pandas.ts"

agreementWithPandas({ is_required: process.env.ALMANAC_REQUIRE_ALL === "1" })
