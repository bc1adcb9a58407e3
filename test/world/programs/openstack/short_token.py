"""Creates a Keystone token that expires within seconds: over HTTP none can be that short."""
import sys
from datetime import datetime, timedelta

import keystone.conf
from keystone.common import utils
from keystone.token import provider, token_formatters

config_file, user_id, project_id, seconds, path = sys.argv[1:]

keystone.conf.configure()
keystone.conf.CONF([f"--config-file={config_file}"], project="keystone")

token = token_formatters.TokenFormatter().create_token(
    user_id,
    utils.isotime(datetime.utcnow() + timedelta(seconds=int(seconds)), subsecond=True),
    [provider.random_urlsafe_str()],
    token_formatters.ProjectScopedPayload,
    methods=["password"],
    project_id=project_id,
)

with open(path, "w", encoding="ascii") as file:
    file.write(token)
