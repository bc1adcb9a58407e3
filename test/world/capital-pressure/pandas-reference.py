"""Repeats the dashboard's computations with pandas, independently and only from the rules.

Reads JSON: series (metric_id, rules of its metric, days since 1970-01-01, values), from_day and
to_day. Writes JSON: the days, values and z-scores of each series' indicator, and the composite
and its tiers for the days from from_day to to_day. Missing values are null.
"""
import json
import sys

import numpy as np
import pandas as pd
from pandas.api.indexers import BaseIndexer

EPOCH = pd.Timestamp("1970-01-01")
PERIOD = {"daily": 1, "weekly": 7, "monthly": 31, "quarterly": 92}
CARRY = {"daily": 10, "weekly": 21, "monthly": 95, "quarterly": 290}
TOLERANCE = {"daily": 7, "weekly": 10, "monthly": 45, "quarterly": 120}


def count_min(cadence, years):
    return {"daily": 150 * years, "weekly": 40 * years, "monthly": 10 * years, "quarterly": 10}[cadence]


class CalendarWindow(BaseIndexer):
    """The values in (t - years, t], by calendar years."""

    def get_window_bounds(self, num_values=0, min_periods=None, center=None, closed=None, step=None):
        starts = self.dates - pd.DateOffset(years=self.years)
        start = self.dates.searchsorted(starts, side="right")
        return start.astype(np.int64), np.arange(1, num_values + 1, dtype=np.int64)


def indicator(one):
    dates = EPOCH + pd.to_timedelta(one["days"], unit="D")
    series = pd.Series(one["values"], index=dates, dtype=float)
    if one["indicator_kind"] == "level":
        return series
    asked = pd.DataFrame({"date": dates, "before": dates - pd.DateOffset(years=1)})
    known = pd.DataFrame({"before": dates, "base": series.to_numpy()})
    tolerance = pd.Timedelta(days=PERIOD[one["cadence"]] + 10)
    base = pd.merge_asof(asked, known, on="before", tolerance=tolerance)["base"].to_numpy()
    growth = (series / np.where(base > 0, base, np.nan) - 1) * 100
    return growth.dropna()


def zscores(one, series):
    cadence, years = one["cadence"], one["zscore_years"]
    window = CalendarWindow(dates=series.index, years=years)
    rolling = series.rolling(window, min_periods=1)
    mean, deviation, count = rolling.mean(), rolling.std(ddof=1), rolling.count()
    starts = series.index - pd.DateOffset(years=years)
    filled = series.index[0] <= starts + pd.Timedelta(days=TOLERANCE[cadence])
    enough = count >= count_min(cadence, years)
    differs = deviation > 1e-12 * np.maximum(1, mean.abs())
    return ((series - mean) / deviation).where(filled & enough & differs)


def exact(one, series):
    """The same deviation, computed separately for each window."""
    start, end = CalendarWindow(dates=series.index, years=one["zscore_years"]).get_window_bounds(len(series))
    values = series.to_numpy()
    windows = [values[a:b] for a, b in zip(start, end)]
    with np.errstate(all="ignore"):
        return [(w[-1] - w.mean()) / w.std(ddof=1) if len(w) > 1 else np.nan for w in windows]


def pressure(one, series, z, grid):
    """The directional z-score on each day of the grid, from published and recent values."""
    published = series.index + pd.Timedelta(days=one["publication_lag"])
    published = pd.DatetimeIndex([pd.offsets.BDay().rollforward(day) for day in published])
    sign = 1 if one["direction_kind"] == "higher_bearish" else -1
    known = pd.DataFrame({"day": published, "date": series.index, "z": sign * z.to_numpy()})
    found = pd.merge_asof(pd.DataFrame({"day": grid}), known, on="day")
    age = found["day"] - found["date"]
    return found["z"].where(age <= pd.Timedelta(days=CARRY[one["cadence"]])).to_numpy()


def plain(values):
    return [None if np.isnan(value) else float(value) for value in values]


def days_of(index):
    return [int(day) for day in (index - EPOCH).days]


def main():
    asked = json.load(sys.stdin)
    grid = pd.bdate_range(EPOCH + pd.Timedelta(days=asked["from_day"]), EPOCH + pd.Timedelta(days=asked["to_day"]))
    scores, by_tier = {}, {1: {}, 2: {}, 3: {}, 4: {}}
    for one in asked["series"]:
        series = indicator(one)
        z = zscores(one, series)
        scores[one["metric_id"]] = {
            "days": days_of(series.index),
            "indicator": plain(series),
            "z": plain(z),
            "exact": plain(exact(one, series)),
        }
        if one["include_in_composite"]:
            by_tier[one["tier"]][one["metric_id"]] = pressure(one, series, z, grid)
    tiers = pd.DataFrame({tier: pd.DataFrame(found, index=grid).mean(axis=1) for tier, found in by_tier.items()})
    composite = {"days": days_of(grid), "z": plain(tiers.mean(axis=1))}
    composite["tiers"] = [plain(tiers[tier]) for tier in tiers]
    json.dump({"scores": scores, "composite": composite}, sys.stdout)


main()
