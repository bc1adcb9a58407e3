"""The dashboard on FastAPI and numpy, served from the same file: a peer for the benchmark.

Without a cache, each request reads the rows that it needs and computes everything. With CACHE=1 a
response is kept until the file's data_version changes. With QUICK=1 uvicorn runs on uvloop and
httptools, which `pip install uvicorn` does not include. RULES names a JSON file of the metrics,
FILE the SQLite file, TODAY the current day, in days since 1970-01-01.
"""
import json
import os
import sqlite3

import numpy as np
import uvicorn
from fastapi import FastAPI, Response

METRICS = json.load(open(os.environ["RULES"], encoding="utf8"))
BY_ID = {one["metric_id"]: one for one in METRICS}
TODAY = int(os.environ["TODAY"])
PERIOD = {"daily": 1, "weekly": 7, "monthly": 31, "quarterly": 92}
CARRY = {"daily": 10, "weekly": 21, "monthly": 95, "quarterly": 290}
TOLERANCE = {"daily": 7, "weekly": 10, "monthly": 45, "quarterly": 120}
SPARKLINE = {"daily": 60, "weekly": 52, "monthly": 36, "quarterly": 20}
COUNT_MIN = {"daily": 150, "weekly": 40, "monthly": 10}
TIERS = {1: "Liquidity and Credit", 2: "Positioning and Sentiment", 3: "Flows, Leverage and Issuance", 4: "Valuation and Structure"}
CAPITAL = sqlite3.connect(f"file:{os.environ['FILE']}?mode=ro", uri=True, check_same_thread=False)


def years_before(days, years):
    """The same dates this many years earlier, with 29 February as the 28th."""
    dates = days.astype("M8[D]")
    months = dates.astype("M8[M]")
    before = months - 12 * years
    length = (before + 1).astype("M8[D]") - before.astype("M8[D]")
    of_month = dates - months.astype("M8[D]")
    return (before.astype("M8[D]") + np.minimum(of_month, length - 1)).astype(np.int64)


def date_of(day):
    return str(np.datetime64(int(day), "D"))


def observed(metric_id, since):
    sql = "select day, value from capital_observation where metric_id = ? and day >= ? order by day"
    rows = CAPITAL.execute(sql, (metric_id, since)).fetchall()
    both = np.array(rows, dtype=np.float64).reshape(-1, 2)
    return both[:, 0].astype(np.int64), both[:, 1]


def indicator(one, days, values):
    if one["indicator_kind"] == "level":
        return days, values
    asked = years_before(days, 1)
    place = np.searchsorted(days, asked, side="right") - 1
    base = np.where(place >= 0, values[place], np.nan)
    known = (place >= 0) & (asked - days[place] <= PERIOD[one["cadence"]] + 10) & (base > 0)
    return days[known], (values[known] / base[known] - 1) * 100


def zscores(one, days, values):
    """All z-scores at once, from running sums of the deviations from the mean."""
    years, cadence = one["zscore_years"], one["cadence"]
    if len(days) == 0:
        return values
    from_day = years_before(days, years)
    start = np.searchsorted(days, from_day, side="right")
    moved = values - values.mean()
    sums = np.concatenate([[0.0], np.cumsum(moved)])
    squares = np.concatenate([[0.0], np.cumsum(moved * moved)])
    end = np.arange(1, len(days) + 1)
    count = end - start
    mean = (sums[end] - sums[start]) / count
    with np.errstate(all="ignore"):
        variance = (squares[end] - squares[start] - count * mean * mean) / (count - 1)
        z = (moved - mean) / np.sqrt(variance)
    least = 10 if cadence == "quarterly" else COUNT_MIN[cadence] * years
    good = (days[0] <= from_day + TOLERANCE[cadence]) & (count >= least) & (variance > 1e-20)
    return np.where(good, z, np.nan)


def last_z(one, days, values, at):
    """The z-score at one position, from its window alone."""
    years, cadence = one["zscore_years"], one["cadence"]
    from_day = years_before(days[at : at + 1], years)[0]
    window = values[np.searchsorted(days, from_day, side="right") : at + 1]
    least = 10 if cadence == "quarterly" else COUNT_MIN[cadence] * years
    if days[0] > from_day + TOLERANCE[cadence] or len(window) < least:
        return None
    deviation = window.std(ddof=1)
    return None if deviation <= 1e-12 * max(1, abs(window.mean())) else (window[-1] - window.mean()) / deviation


def counted(one, days, values):
    """The signed z-score of the latest published value; None if that is too old."""
    published = days + one["publication_lag"]
    weekday = (published + 3) % 7
    published = published + np.where(weekday == 5, 2, np.where(weekday == 6, 1, 0))
    at = np.searchsorted(published, TODAY, side="right") - 1
    if at < 0 or TODAY - days[at] > CARRY[one["cadence"]]:
        return None
    z = last_z(one, days, values, at)
    return None if z is None else (z if one["direction_kind"] == "higher_bearish" else -z)


def label(z):
    side = "tight" if z > 0 else "easy"
    size = abs(z)
    return "near normal" if size < 0.5 else ("mildly " if size < 1 else "very " if size >= 2 else "") + side


def sign(z, least):
    return "bear" if z >= least else "bull" if z <= -least else "neutral"


def reading(one, days, values):
    z = last_z(one, days, values, len(days) - 1)
    pressure = 0.0 if z is None else z if one["direction_kind"] == "higher_bearish" else -z
    direction, delta = sign(pressure, 0.5), values[-1] - values[-2]
    for rule in one["rules"]:
        level = rule["level"]
        if {"above": values[-1] > level, "at_or_above": values[-1] >= level, "below": values[-1] < level}[rule["when"]]:
            direction = rule["vote"]
            break
    return {
        **{key: one[key] for key in ("metric_id", "name", "tier", "source", "unit", "include_in_composite", "description")},
        "value": f"{values[-1]:.2f}",
        "delta": f"{delta:+.2f}",
        "delta_class": sign(delta, 1e-9),
        "z": None if z is None else round(float(z), 4),
        "z_label": label(pressure),
        "z_class": sign(pressure, 0.5),
        "as_of": date_of(days[-1]),
        "sparkline": [round(float(value), 4) for value in values[-SPARKLINE[one["cadence"]] :]],
        "vote": {"direction": direction, "reason": f"{one['reasons'][direction]} (z {pressure:+.2f} over {one['zscore_years']}y)"},
    }


def history():
    sql = """select c.day, z, tier_1, tier_2, tier_3, tier_4, close from capital_composite c
      left join capital_price p on p.ticker = 'SP500' and p.day = c.day order by c.day desc limit 252"""
    return [
        {
            "ts": date_of(day),
            "z": z,
            "index_close": close,
            "tier_zs": {str(tier + 1): one for tier, one in enumerate(tiers) if one is not None},
        }
        for day, z, *tiers, close in reversed(CAPITAL.execute(sql).fetchall())
    ]


def dashboard():
    readings, by_tier = {tier: [] for tier in TIERS}, {tier: [] for tier in TIERS}
    tally = {"bull": 0, "neutral": 0, "bear": 0}
    for one in METRICS:
        years = one["zscore_years"] + (1 if one["indicator_kind"] == "yoy" else 0)
        days, values = indicator(one, *observed(one["metric_id"], TODAY - 366 * years - 600))
        if len(days) < 2:
            continue
        shown = reading(one, days, values)
        readings[one["tier"]].append(shown)
        if one["include_in_composite"]:
            tally[shown["vote"]["direction"]] += 1
            z = counted(one, days, values)
            if z is not None:
                by_tier[one["tier"]].append(z)
    averages = {tier: float(np.mean(zs)) if zs else None for tier, zs in by_tier.items()}
    known = [average for average in averages.values() if average is not None]
    z = round(float(np.mean(known)), 4) if known else None
    composite = None if z is None else {"z": z, "z_label": label(z), "sign_class": sign(z, 0.25), "tally": tally, "metrics_total": sum(tally.values())}
    return {
        "composite": composite,
        "tiers": [{"tier": tier, "name": name, "avg_z": averages[tier] and round(averages[tier], 4), "metrics": readings[tier]} for tier, name in TIERS.items()],
        "composite_history": history(),
    }


def detail(metric_id):
    one = BY_ID[metric_id]
    stored, values = observed(metric_id, -100000)
    days, values = indicator(one, stored, values)
    z = zscores(one, days, values)
    dates = days.astype("M8[D]").astype(str).tolist()
    series = [
        {"ts": ts, "indicator": round(value, 6), "z": None if score != score else round(score, 4)}
        for ts, value, score in zip(dates, values.tolist(), z.tolist())
    ]
    return {
        **{key: value for key, value in one.items() if key not in ("rules", "reasons")},
        "reading": reading(one, days, values),
        "series": series,
        "obs_count": len(stored),
    }


app = FastAPI()
kept = {}


def answer(key, make):
    if os.environ.get("CACHE") != "1":
        return Response(json.dumps(make()), media_type="application/json")
    version = CAPITAL.execute("pragma data_version").fetchone()[0]
    if kept.get("version") != version:
        kept.clear()
        kept["version"] = version
    if key not in kept:
        kept[key] = json.dumps(make()).encode()
    return Response(kept[key], media_type="application/json")


@app.get("/api/dashboard")
async def get_dashboard():
    return answer("dashboard", dashboard)


@app.get("/api/metrics/{metric_id}/detail")
async def get_detail(metric_id: str):
    return answer(metric_id, lambda: detail(metric_id))


@app.get("/health")
async def get_health():
    return {"status": "ok"}


if __name__ == "__main__":
    quick = os.environ.get("QUICK") == "1"
    uvicorn.run(
        app,
        host="127.0.0.1",
        port=int(os.environ["PORT"]),
        loop="uvloop" if quick else "asyncio",
        http="httptools" if quick else "h11",
        access_log=False,
        log_level="warning",
    )
