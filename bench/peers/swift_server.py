"""One of Swift's servers, or its rings. Debian's programs read /etc/swift; this script does not.

swift_server.py rings FOLDER DEVICES ACCOUNT_PORT CONTAINER_PORT OBJECT_PORT
swift_server.py serve FOLDER proxy|account|container|object
"""

import os
import sys

from swift.common import utils

MODE, FOLDER, *REST = sys.argv[1:]
utils.set_swift_dir(FOLDER)

if MODE == "rings":
    from swift.common.ring import RingBuilder

    for name, port in zip(("account", "container", "object"), REST[1:]):
        builder = RingBuilder(8, 1, 1)
        builder.add_dev(
            {
                "region": 1,
                "zone": 1,
                "ip": "127.0.0.1",
                "port": int(port),
                "device": REST[0],
                "weight": 1,
            }
        )
        builder.rebalance()
        builder.get_ring().save(os.path.join(FOLDER, f"{name}.ring.gz"))
else:
    from swift.common.wsgi import run_wsgi
    from swift.obj import server

    callback = {"object": server.global_conf_callback}.get(REST[0])
    more = {} if callback is None else {"global_conf_callback": callback}
    path = os.path.join(FOLDER, f"{REST[0]}-server.conf")
    sys.exit(run_wsgi(path, f"{REST[0]}-server", **more))
