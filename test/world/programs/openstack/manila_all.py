"""Manila's API, scheduler and share manager in one process, to avoid a message broker."""
import eventlet

eventlet.monkey_patch()
import __original_module_threading as original  # noqa: E402
import sys  # noqa: E402
import threading  # noqa: E402

original.current_thread.__globals__["_active"] = threading._active
from oslo_config import cfg  # noqa: E402
from oslo_log import log  # noqa: E402
from oslo_service import service as launching  # noqa: E402

from manila import service, utils, version  # noqa: E402
from manila.common import config  # noqa: E402
from manila.db.sqlalchemy import api  # noqa: E402

plain_delete = api.share_snapshot_instance_delete


def delete(context, key, session=None):
    """Deletes these rows first: Manila would delete them over other connections during a
    transaction that has read them, which SQLite rejects."""
    for rule in api.share_snapshot_access_get_all_for_snapshot_instance(context, key):
        api.share_snapshot_instance_access_delete(context, rule["access_id"], key)
    for location in api.share_snapshot_instance_get(context, key).export_locations:
        api.share_snapshot_instance_export_location_delete(context, location["id"])
    return plain_delete(context, key, session)


api.share_snapshot_instance_delete = delete

CONF = cfg.CONF
log.register_options(CONF)
CONF(sys.argv[1:], project="manila", version=version.version_string())
config.verify_share_protocols()
log.setup(CONF, "manila")
utils.monkey_patch()
launcher = launching.ServiceLauncher(CONF)
launcher.launch_service(service.Service.create(binary="manila-scheduler"))
for backend in CONF.enabled_share_backends:
    launcher.launch_service(
        service.Service.create(
            host="%s@%s" % (CONF.host, backend),
            service_name=backend,
            binary="manila-share",
            coordination=True,
        )
    )
launcher.launch_service(service.WSGIService("osapi_share"))
launcher.wait()
