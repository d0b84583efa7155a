"""TLS of the client side: an SSL context from the settings."""

import ssl

from broker.client.config import NetworkConfig
from broker.errors import ConfigError


def make_context(config: NetworkConfig) -> ssl.SSLContext | None:
    """The context for all connections, or None for connections without TLS."""
    if not config.uses_tls:
        return None
    try:
        for path in (
            config.ssl_ca_location,
            config.ssl_certificate_location,
            config.ssl_key_location,
        ):
            check_readable(path)
        context = ssl.create_default_context(cafile=config.ssl_ca_location)
        # The certificate chain is checked even if the host name is not.
        context.check_hostname = config.ssl_endpoint_identification_algorithm == "https"
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        if config.ssl_certificate_location is not None:
            context.load_cert_chain(
                config.ssl_certificate_location,
                config.ssl_key_location,
                config.ssl_key_password or "",
            )
    except OSError as error:
        raise ConfigError(
            f"cannot load the TLS files: {error}",
            hint="see ssl_ca_location, ssl_certificate_location, ssl_key_location (PEM files)",
        ) from error
    return context


def check_readable(path: str | None) -> None:
    """Raise OSError with the path of an unreadable file: the ssl module does not name it."""
    if path is not None:
        with open(path, "rb"):
            pass
