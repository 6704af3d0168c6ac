"""Where the security of the Java client has other names in librdkafka: keys in files of PEM, and logins of SASL."""

from __future__ import annotations

import re
from collections.abc import Mapping

from eventide.errors import ProgramError

_LOGIN = re.compile(r"\s*([\w.$]+)\s+(?:required|requisite|sufficient|optional)\b(.*);\s*\Z", re.DOTALL | re.IGNORECASE)
_OPTION = re.compile(r'\s*([\w.]+)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^\s";]+))')
_WITH_PASSWORD = ("PlainLoginModule", "ScramLoginModule")

_STORES = {
    "ssl.truststore.location": "ssl.ca.location with a file of PEM; keytool -exportcert -rfc writes one",
    "ssl.keystore.location": "ssl.certificate.location and ssl.key.location with files of PEM, or "
    "ssl.keystore.type=PKCS12; keytool -importkeystore -deststoretype PKCS12 makes one",
}
_PEM = {
    "ssl.truststore.certificates": "ssl.ca.pem",
    "ssl.keystore.certificate.chain": "ssl.certificate.pem",
    "ssl.keystore.key": "ssl.key.pem",
}
_CHOSEN_BY_OPENSSL = "OpenSSL chooses it; leave it out"
_REFUSED = {
    "ssl.protocol": _CHOSEN_BY_OPENSSL,
    "ssl.enabled.protocols": _CHOSEN_BY_OPENSSL,
    "ssl.provider": _CHOSEN_BY_OPENSSL,
    "ssl.keymanager.algorithm": _CHOSEN_BY_OPENSSL,
    "ssl.trustmanager.algorithm": _CHOSEN_BY_OPENSSL,
    "ssl.secure.random.implementation": _CHOSEN_BY_OPENSSL,
    "ssl.engine.factory.class": "it is a class of Java; name keys and certificates with ssl.*.location",
    "security.providers": "they are classes of Java; name keys and certificates with ssl.*.location",
    "sasl.client.callback.handler.class": "it is a class of Java; use sasl.oauthbearer.method and its like",
    "sasl.login.callback.handler.class": "it is a class of Java; use sasl.oauthbearer.method and its like",
    "sasl.login.class": "it is a class of Java; use sasl.username and sasl.password",
}


def translated_security(properties: Mapping[str, str]) -> dict[str, str]:
    """The properties with those of TLS and SASL as librdkafka has them.

    Raises:
        ProgramError: if one has no counterpart; the error names what to set instead.
    """
    found = dict(properties)
    _translate_trust(found)
    _translate_keys(found)
    for java, name in _PEM.items():
        if java in found:
            found[name] = found.pop(java)
    if found.get("ssl.endpoint.identification.algorithm") == "":
        found["ssl.endpoint.identification.algorithm"] = "none"
    if "sasl.jaas.config" in found:
        login = _login(found.pop("sasl.jaas.config"))
        found = {**login, **found}
    for name, instead in _REFUSED.items():
        if name in found:
            raise ProgramError(f"the property {name} of the Java client is not here: {instead}")
    return found


def _translate_trust(found: dict[str, str]) -> None:
    kind, location = found.pop("ssl.truststore.type", ""), found.pop("ssl.truststore.location", None)
    password = found.pop("ssl.truststore.password", None)
    if location is not None:
        if kind.upper() != "PEM":
            raise _no_store("ssl.truststore.location")
        found["ssl.ca.location"] = location
    elif password is not None:
        raise _no_store("ssl.truststore.location")


def _translate_keys(found: dict[str, str]) -> None:
    kind, location = found.pop("ssl.keystore.type", "").upper(), found.get("ssl.keystore.location")
    if location is None or kind == "PKCS12" or location.endswith((".p12", ".pfx")):
        return  # librdkafka reads PKCS #12, under the same name
    if kind != "PEM":
        raise _no_store("ssl.keystore.location")
    del found["ssl.keystore.location"]
    found |= {"ssl.certificate.location": location, "ssl.key.location": location}


def _no_store(name: str) -> ProgramError:
    return ProgramError(f"{name} names a store of Java's, which only Java reads: set {_STORES[name]}")


def _login(jaas: str) -> dict[str, str]:
    """Read a login of JAAS, for the mechanisms with a name and a password."""
    login = _LOGIN.match(jaas)
    module = login[1].rpartition(".")[2] if login else ""
    if login is None or module not in _WITH_PASSWORD:
        instead = {
            "Krb5LoginModule": "set sasl.kerberos.principal, sasl.kerberos.keytab and sasl.kerberos.service.name",
            "OAuthBearerLoginModule": "set sasl.oauthbearer.method=oidc, sasl.oauthbearer.client.id, "
            "sasl.oauthbearer.client.secret and sasl.oauthbearer.token.endpoint.url",
        }.get(module, "set sasl.username and sasl.password")
        what = f"the login module {module}" if module else "what it says"
        raise ProgramError(f"sasl.jaas.config is Java's, and {what} has no counterpart: {instead}")
    options = {
        found[1]: re.sub(r"\\(.)", r"\1", found[2]) if found[3] is None else found[3]
        for found in _OPTION.finditer(login[2])
    }
    if missing := {"username", "password"} - options.keys():
        raise ProgramError(f"sasl.jaas.config has no {' and no '.join(sorted(missing))}; {module} needs both")
    return {"sasl.username": options["username"], "sasl.password": options["password"]}
