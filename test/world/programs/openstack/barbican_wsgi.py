"""Barbican's API, with our own paste file: Debian's entry point requires one in /etc."""
import os

from paste import deploy

here = os.path.dirname(os.path.abspath(__file__))
application = deploy.loadapp("config:" + os.path.join(here, "barbican-paste.ini"))
