"""Names of Connect's schemas in Avro, as in Confluent's converter."""

NAMESPACE = "io.confluent.connect.avro"
DEFAULT_NAME = f"{NAMESPACE}.ConnectDefault"
UNION_NAME = f"{NAMESPACE}.Union"
ENUM_PARAMETER = f"{NAMESPACE}.Enum"
MAP_ENTRY = "MapEntry"

# Parameters of Connect's schemas that store information of Avro schemas.
RECORD_DOC = f"{NAMESPACE}.record.doc"
FIELD_DOC = f"{NAMESPACE}.field.doc."
FIELD_DEFAULT = f"{NAMESPACE}.field.default"
ENUM_DOC = f"{NAMESPACE}.enum.doc."
ENUM_DEFAULT = f"{NAMESPACE}.enum.default."
FIXED_SIZE = "connect.fixed.size"
PRECISION = "connect.decimal.precision"
PRECISION_DEFAULT = 64

# Properties of Avro's types that store information of Connect's schemas.
CONNECT_NAME = "connect.name"
CONNECT_DOC = "connect.doc"
CONNECT_VERSION = "connect.version"
CONNECT_PARAMETERS = "connect.parameters"
CONNECT_DEFAULT = "connect.default"
CONNECT_TYPE = "connect.type"
CONNECT_INTERNAL_TYPE = "connect.internal.type"
