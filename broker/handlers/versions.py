"""ApiVersions: the supported versions of each API."""

from collections.abc import Iterable

from broker.coordinator.transaction import TRANSACTIONS_V2
from broker.errors import ErrorCode
from broker.handlers.state import BrokerState, RequestContext
from broker.protocol.api_keys import ApiKey
from broker.protocol.frame import version_range
from broker.protocol.messages.metadata import (
    ApiVersion,
    ApiVersionsRequest,
    ApiVersionsResponse,
    FinalizedFeatureKey,
    SupportedFeatureKey,
)

# librdkafka 2.0 interprets a lower bound above 0 as "this broker cannot read compressed batches"
# and silently stops compressing, so 0 is announced although 3 is the first supported version.
ANNOUNCED_MIN = {ApiKey.PRODUCE: 0}

SOFTWARE_VERSION_MIN = 3

# Transactions v2: producing adds partitions to the transaction, and every end increments the epoch.
# A feature that starts at 0 is reported from version 4 on; older clients cannot read it.
FEATURES_VERSION_MIN = 4
FEATURES_EPOCH = 0
SUPPORTED_FEATURES = [SupportedFeatureKey("transaction.version", 0, TRANSACTIONS_V2)]
FINALIZED_FEATURES = [FinalizedFeatureKey("transaction.version", TRANSACTIONS_V2, TRANSACTIONS_V2)]


class VersionTable:
    """Responds to ApiVersions for the APIs that have a handler."""

    def __init__(self, answered: Iterable[ApiKey]) -> None:
        self._versions = [_announced(api_key) for api_key in sorted(answered)]

    def api_versions(
        self, state: BrokerState, request: ApiVersionsRequest, context: RequestContext
    ) -> ApiVersionsResponse:
        """The list; also stores the name of the client's software."""
        if context.version >= SOFTWARE_VERSION_MIN:
            context.connection.software_name = request.client_software_name
            context.connection.software_version = request.client_software_version
        answer = ApiVersionsResponse(api_keys=self._versions)
        if context.version >= FEATURES_VERSION_MIN:
            answer.supported_features = SUPPORTED_FEATURES
            answer.finalized_features = FINALIZED_FEATURES
            answer.finalized_features_epoch = FEATURES_EPOCH
        return answer

    def unsupported(self) -> ApiVersionsResponse:
        """The response, always in version 0, to an unknown version of ApiVersions."""
        return ApiVersionsResponse(
            error_code=ErrorCode.UNSUPPORTED_VERSION, api_keys=self._versions
        )


def _announced(api_key: ApiKey) -> ApiVersion:
    versions = version_range(api_key)
    return ApiVersion(api_key, ANNOUNCED_MIN.get(api_key, versions.first), versions.last)
