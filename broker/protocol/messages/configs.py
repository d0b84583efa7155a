"""Settings of topics and brokers, and log directories."""

from broker.protocol import wire
from broker.protocol.api_keys import ApiKey


@wire.part
class DescribeConfigsResource:
    """Part of DescribeConfigsRequest."""

    resource_type: int = wire.int8()
    resource_name: str = wire.string()
    configuration_keys: list[str] | None = wire.array("string", nullable="0+")


@wire.request(ApiKey.DESCRIBE_CONFIGS, "1-4", flexible=4)
class DescribeConfigsRequest:
    """DescribeConfigs request."""

    resources: list[DescribeConfigsResource] = wire.array(DescribeConfigsResource)
    include_synonyms: bool = wire.boolean("1+")
    include_documentation: bool = wire.boolean("3+")


@wire.part
class DescribeConfigsSynonym:
    """Part of DescribeConfigsResponse."""

    name: str = wire.string("1+")
    value: str | None = wire.string("1+", nullable="0+")
    source: int = wire.int8("1+")


@wire.part
class DescribeConfigsResourceResult:
    """Part of DescribeConfigsResponse."""

    name: str = wire.string()
    value: str | None = wire.string(nullable="0+")
    read_only: bool = wire.boolean()
    config_source: int = wire.int8("1+", default=-1)
    is_sensitive: bool = wire.boolean()
    synonyms: list[DescribeConfigsSynonym] = wire.array(DescribeConfigsSynonym, "1+")
    config_type: int = wire.int8("3+")
    documentation: str | None = wire.string("3+", nullable="0+")


@wire.part
class DescribeConfigsResult:
    """Part of DescribeConfigsResponse."""

    error_code: int = wire.int16()
    error_message: str | None = wire.string(nullable="0+")
    resource_type: int = wire.int8()
    resource_name: str = wire.string()
    configs: list[DescribeConfigsResourceResult] = wire.array(DescribeConfigsResourceResult)


@wire.response(ApiKey.DESCRIBE_CONFIGS, "1-4", flexible=4)
class DescribeConfigsResponse:
    """DescribeConfigs response."""

    throttle_time_ms: int = wire.int32()
    results: list[DescribeConfigsResult] = wire.array(DescribeConfigsResult)


@wire.part
class AlterableConfig:
    """Part of AlterConfigsRequest."""

    name: str = wire.string()
    value: str | None = wire.string(nullable="0+")


@wire.part
class AlterConfigsResource:
    """Part of AlterConfigsRequest."""

    resource_type: int = wire.int8()
    resource_name: str = wire.string()
    configs: list[AlterableConfig] = wire.array(AlterableConfig)


@wire.request(ApiKey.ALTER_CONFIGS, "0-2", flexible=2)
class AlterConfigsRequest:
    """AlterConfigs request."""

    resources: list[AlterConfigsResource] = wire.array(AlterConfigsResource)
    validate_only: bool = wire.boolean()


@wire.part
class AlterConfigsResourceResponse:
    """Part of AlterConfigsResponse."""

    error_code: int = wire.int16()
    error_message: str | None = wire.string(nullable="0+")
    resource_type: int = wire.int8()
    resource_name: str = wire.string()


@wire.response(ApiKey.ALTER_CONFIGS, "0-2", flexible=2)
class AlterConfigsResponse:
    """AlterConfigs response."""

    throttle_time_ms: int = wire.int32()
    responses: list[AlterConfigsResourceResponse] = wire.array(AlterConfigsResourceResponse)


@wire.part
class IncrementalAlterConfigsRequestAlterableConfig:
    """Part of IncrementalAlterConfigsRequest."""

    name: str = wire.string()
    config_operation: int = wire.int8()
    value: str | None = wire.string(nullable="0+")


@wire.part
class IncrementalAlterConfigsRequestAlterConfigsResource:
    """Part of IncrementalAlterConfigsRequest."""

    resource_type: int = wire.int8()
    resource_name: str = wire.string()
    configs: list[IncrementalAlterConfigsRequestAlterableConfig] = wire.array(
        IncrementalAlterConfigsRequestAlterableConfig
    )


@wire.request(ApiKey.INCREMENTAL_ALTER_CONFIGS, "0-1", flexible=1)
class IncrementalAlterConfigsRequest:
    """IncrementalAlterConfigs request."""

    resources: list[IncrementalAlterConfigsRequestAlterConfigsResource] = wire.array(
        IncrementalAlterConfigsRequestAlterConfigsResource
    )
    validate_only: bool = wire.boolean()


@wire.response(ApiKey.INCREMENTAL_ALTER_CONFIGS, "0-1", flexible=1)
class IncrementalAlterConfigsResponse:
    """IncrementalAlterConfigs response."""

    throttle_time_ms: int = wire.int32()
    responses: list[AlterConfigsResourceResponse] = wire.array(AlterConfigsResourceResponse)


@wire.request(ApiKey.LIST_CONFIG_RESOURCES, "0-1", flexible=0)
class ListConfigResourcesRequest:
    """ListConfigResources request."""

    resource_types: list[int] = wire.array("int8", "1+")


@wire.part
class ConfigResource:
    """Part of ListConfigResourcesResponse."""

    resource_name: str = wire.string()
    resource_type: int = wire.int8("1+", default=16)


@wire.response(ApiKey.LIST_CONFIG_RESOURCES, "0-1", flexible=0)
class ListConfigResourcesResponse:
    """ListConfigResources response."""

    throttle_time_ms: int = wire.int32()
    error_code: int = wire.int16()
    config_resources: list[ConfigResource] = wire.array(ConfigResource)


@wire.part
class DescribableLogDirTopic:
    """Part of DescribeLogDirsRequest."""

    topic: str = wire.string()
    partitions: list[int] = wire.array("int32")


@wire.request(ApiKey.DESCRIBE_LOG_DIRS, "1-5", flexible=2)
class DescribeLogDirsRequest:
    """DescribeLogDirs request."""

    topics: list[DescribableLogDirTopic] | None = wire.array(DescribableLogDirTopic, nullable="0+")


@wire.part
class DescribeLogDirsPartition:
    """Part of DescribeLogDirsResponse."""

    partition_index: int = wire.int32()
    partition_size: int = wire.int64()
    offset_lag: int = wire.int64()
    is_future_key: bool = wire.boolean()


@wire.part
class DescribeLogDirsTopic:
    """Part of DescribeLogDirsResponse."""

    name: str = wire.string()
    partitions: list[DescribeLogDirsPartition] = wire.array(DescribeLogDirsPartition)


@wire.part
class DescribeLogDirsResult:
    """Part of DescribeLogDirsResponse."""

    error_code: int = wire.int16()
    log_dir: str = wire.string()
    topics: list[DescribeLogDirsTopic] = wire.array(DescribeLogDirsTopic)
    total_bytes: int = wire.int64("4+", default=-1)
    usable_bytes: int = wire.int64("4+", default=-1)
    is_cordoned: bool = wire.boolean("5+")


@wire.response(ApiKey.DESCRIBE_LOG_DIRS, "1-5", flexible=2)
class DescribeLogDirsResponse:
    """DescribeLogDirs response."""

    throttle_time_ms: int = wire.int32()
    error_code: int = wire.int16("3+")
    results: list[DescribeLogDirsResult] = wire.array(DescribeLogDirsResult)
