"""Barbican's API, with a paste file of our own: Debian's entry point insists on one in /etc."""
import os

from paste import deploy

here = os.path.dirname(os.path.abspath(__file__))
application = deploy.loadapp("config:" + os.path.join(here, "barbican-paste.ini"))
