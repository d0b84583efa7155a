"""TLS of the client side: the ssl module's context from our settings."""

import ssl

from broker.client.config import NetworkConfig
from broker.errors import ConfigError


def make_context(config: NetworkConfig) -> ssl.SSLContext | None:
    """The context for all connections, or None when they are in the clear."""
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
        # "Host name not checked" still checks the chain: it is for brokers reached by other names.
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
    """OSError with the name of a file that cannot be read: the ssl module does not name it."""
    if path is not None:
        with open(path, "rb"):
            pass
