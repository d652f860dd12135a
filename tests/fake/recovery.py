"""Certificate, restore and factory reset of the applier in memory. Part of appliance.py.

appliance.box.recovery.refuse = ApplierRefused("bad-certificate", "…")   # what every restore is refused with
"""

from __future__ import annotations

from dataclasses import dataclass, field

from tests.fake.part import Part

from applier.wire.errors import ApplierRefused
from applier.wire.shapes import Certificate, Nothing, PageKey, Restored

# It has signed itself, and is for the name "fairlead"; its key exists nowhere any more.
CERTIFICATE = """\
-----BEGIN CERTIFICATE-----
MIIBdDCCARqgAwIBAgICEAswCgYIKoZIzj0EAwIwEzERMA8GA1UEAwwIZmFpcmxl
YWQwIBcNMjAwMTAxMDAwMDAwWhgPMjA5OTEyMzEyMzU5NTlaMBMxETAPBgNVBAMM
CGZhaXJsZWFkMFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEMc3givegObdu0sUj
06PFXx88VCZydp8Dwq/Mg4whh3nu2r5P65nVnydy75wTLprN4RGtbk8fBpfY1OnB
1Tn8+aNcMFowJAYDVR0RBB0wG4IIZmFpcmxlYWSCCWxvY2FsaG9zdIcEfwAAATAT
BgNVHSUEDDAKBggrBgEFBQcDATAdBgNVHQ4EFgQUrq/CUrGLiU+f1t+aTp9yikqj
mBEwCgYIKoZIzj0EAwIDSAAwRQIgTcw2nh77tUqdLemQq2V7coLpTm2l0tfslGXW
pw7AWWACIQDITjYyYKHX77mqiksZiKCq1EgXlD1ktAAFJYNpgx1mHw==
-----END CERTIFICATE-----
"""


@dataclass
class FakeBelongings:
    """Everything that can be arranged, and what was asked for."""

    certificate: str = CERTIFICATE
    key: str = "-----BEGIN PRIVATE KEY-----\nc2FtcGxl\n-----END PRIVATE KEY-----\n"
    number: int = 0  # below which no generation begins
    refuse: ApplierRefused | None = None
    resets: list[str] = field(default_factory=list)  # by whom


class FakeRecovery(Part):
    """The methods of applier.wire.client.Client that are about backup files and the factory reset."""

    def certificate(self) -> Certificate:
        with self._box() as box:
            return {"certificate": box.recovery.certificate}

    def page_key(self) -> PageKey:
        with self._box() as box:
            return {"certificate": box.recovery.certificate, "key": box.recovery.key}

    def restore(self, certificate: str, key: str, number: int, user: str) -> Restored:
        with self._box() as box:
            own = box.recovery
            if own.refuse is not None:
                raise own.refuse
            changed = bool(certificate) and (certificate, key) != (own.certificate, own.key)
            if changed:
                own.certificate, own.key = certificate, key
            own.number = max(own.number, number)
            return {"certificate": changed}

    def factory_reset(self, hostname: str, user: str) -> Nothing:
        with self._box() as box:
            if hostname != box.snapshot.network.hostname:
                raise ApplierRefused("wrong-hostname", "This is not the host name of this box. Nothing was reset.")
            box.recovery.resets.append(user)
        self.reboot(user)
        return {}
