"""A Manila driver that stores each share and snapshot in a real folder, without NFS."""
import os
import shutil
import subprocess

from manila.tests.share.drivers import dummy

ROOT = os.environ["MANILA_FOLDERS"]


class FolderDriver(dummy.DummyDriver):
    def _folder(self, key):
        place = self.private_storage.get(key, "fake_provider_location") or ""
        return place.replace("/path/to/fake", ROOT)

    def _generate_export_locations(self, mountpoint, share_server=None):
        path = mountpoint.replace("/path/to/fake", ROOT)
        return [self._get_export(path, "127.0.0.1", False, True)]

    def _copy(self, source, target):
        shutil.rmtree(target, ignore_errors=True)
        os.makedirs(target)
        subprocess.check_call(["cp", "-a", "--reflink=auto", source + "/.", target])

    def create_share(self, context, share, share_server=None):
        made = super().create_share(context, share, share_server)
        os.makedirs(self._folder(share["id"]), exist_ok=True)
        return made

    def create_share_from_snapshot(
        self, context, share, snapshot, share_server=None, parent_share=None
    ):
        made = super().create_share_from_snapshot(
            context, share, snapshot, share_server, parent_share
        )
        self._copy(self._folder(snapshot["id"]), self._folder(share["id"]))
        return made

    def create_snapshot(self, context, snapshot, share_server=None):
        made = super().create_snapshot(context, snapshot, share_server)
        self._copy(self._folder(snapshot["share_instance_id"]), self._folder(snapshot["id"]))
        return made

    def delete_share(self, context, share, share_server=None):
        self._remove(share["id"], lambda: super(FolderDriver, self).delete_share(
            context, share, share_server))

    def delete_snapshot(self, context, snapshot, share_server=None):
        self._remove(snapshot["id"], lambda: super(FolderDriver, self).delete_snapshot(
            context, snapshot, share_server))

    def _remove(self, key, forget):
        folder = self._folder(key)
        forget()
        if folder:
            shutil.rmtree(folder, ignore_errors=True)
