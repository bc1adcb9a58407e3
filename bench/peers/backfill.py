"""The composite of 20 years as pandas would compute it, from the same file into the same table."""
import json
import sqlite3
import sys

import numpy as np
import pandas as pd

PERIOD = {"daily": 1, "weekly": 7, "monthly": 31, "quarterly": 92}
CARRY = {"daily": 10, "weekly": 21, "monthly": 95, "quarterly": 290}
TOLERANCE = {"daily": 7, "weekly": 10, "monthly": 45, "quarterly": 120}
COUNT_MIN = {"daily": 150, "weekly": 40, "monthly": 10}


def indicator(one, series):
    if one["indicator_kind"] == "level":
        return series
    asked = pd.DataFrame({"before": series.index - pd.DateOffset(years=1)})
    known = pd.DataFrame({"before": series.index, "base": series.to_numpy()})
    tolerance = pd.Timedelta(days=PERIOD[one["cadence"]] + 10)
    base = pd.merge_asof(asked, known, on="before", tolerance=tolerance)["base"].to_numpy()
    return ((series / np.where(base > 0, base, np.nan) - 1) * 100).dropna()


def zscores(one, series):
    cadence, years = one["cadence"], one["zscore_years"]
    starts = series.index - pd.DateOffset(years=years)
    rolling = series.rolling(f"{one['indicator_window']}D")
    mean, deviation, count = rolling.mean(), rolling.std(ddof=1), rolling.count()
    filled = series.index[0] <= starts + pd.Timedelta(days=TOLERANCE[cadence])
    enough = count >= (10 if cadence == "quarterly" else COUNT_MIN[cadence] * years)
    differs = deviation > 1e-12 * np.maximum(1, mean.abs())
    return ((series - mean) / deviation).where(filled & enough & differs)


def pressure(one, z, grid):
    published = z.index + pd.Timedelta(days=one["publication_lag"])
    weekday = published.weekday
    published = published + pd.to_timedelta(np.where(weekday == 5, 2, np.where(weekday == 6, 1, 0)), unit="D")
    sign = 1 if one["direction_kind"] == "higher_bearish" else -1
    known = pd.DataFrame({"day": published, "date": z.index, "z": sign * z.to_numpy()})
    found = pd.merge_asof(pd.DataFrame({"day": grid}), known, on="day")
    return found["z"].where(found["day"] - found["date"] <= pd.Timedelta(days=CARRY[one["cadence"]])).to_numpy()


def main(path, rules, from_day, to_day):
    metrics = json.load(open(rules, encoding="utf8"))
    file = sqlite3.connect(path)
    observations = pd.read_sql("select metric_id, day, value from capital_observation order by metric_id, day", file)
    observations["date"] = pd.to_datetime(observations["day"], unit="D")
    by_metric = dict(iter(observations.groupby("metric_id", sort=False)))
    epoch = pd.Timestamp("1970-01-01")
    grid = pd.bdate_range(epoch + pd.Timedelta(days=from_day), epoch + pd.Timedelta(days=to_day))
    by_tier = {1: {}, 2: {}, 3: {}, 4: {}}
    for one in metrics:
        rows = by_metric.get(one["metric_id"])
        if rows is None or not one["include_in_composite"]:
            continue
        series = indicator(one, pd.Series(rows["value"].to_numpy(), index=pd.DatetimeIndex(rows["date"])))
        by_tier[one["tier"]][one["metric_id"]] = pressure(one, zscores(one, series), grid)
    tiers = pd.DataFrame({tier: pd.DataFrame(found, index=grid).mean(axis=1) for tier, found in by_tier.items()})
    composite = tiers.mean(axis=1)
    rows = [
        (day, z, *(None if one != one else one for one in row))
        for day, z, row in zip((grid - epoch).days.tolist(), composite.tolist(), tiers.to_numpy().tolist())
        if z == z
    ]
    with file:
        file.executemany("insert or replace into capital_composite values (?, ?, ?, ?, ?, ?)", rows)
    print(json.dumps({"days": len(rows), "last": rows[-1][1]}))


main(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
