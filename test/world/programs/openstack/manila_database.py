"""Creates Manila's tables from its models and marks them as up to date, as Manila's own tests do:
its migrations change column types, which SQLite does not support."""
import sys

from oslo_config import cfg

from manila import version
from manila.common import config  # noqa: F401
from manila.db import migration
from manila.db.sqlalchemy import api, models

cfg.CONF(sys.argv[1:], project="manila", version=version.version_string())
engine = api.get_engine()
models.BASE.metadata.create_all(engine)
migration.stamp("head")
engine.execute("PRAGMA journal_mode=WAL")
