"""The workloads in Flink SQL; runs in Flink's own Python environment.

python -m benchmarks.sql.flink_app WORKLOAD BOOTSTRAP INPUT STATE_DIR JAR [GROUP OUTPUT]...

Each pair of names is a job: the first warms up the JVM, a line on standard input starts the next.
"""

import signal
import sys

from pyflink.common import Configuration  # type: ignore[import-not-found]
from pyflink.table import (  # type: ignore[import-not-found]
    EnvironmentSettings,
    TableEnvironment,
)

SOURCE = """
CREATE TABLE orders{number} (
  buyer STRING, `user` STRING, item STRING, price DOUBLE, quantity INT, region STRING,
  `order` STRING, moment TIMESTAMP_LTZ(3) METADATA FROM 'timestamp'
) WITH (
  'connector' = 'kafka', 'properties.bootstrap.servers' = '{bootstrap}', 'topic' = '{topic}',
  'properties.group.id' = '{group}', 'scan.startup.mode' = 'earliest-offset',
  'key.format' = 'raw', 'key.fields' = 'buyer',
  'value.format' = 'json', 'value.fields-include' = 'EXCEPT_KEY'
)"""
SINKS = {
    "filter": """
CREATE TABLE results{number} (buyer STRING, `user` STRING, price DOUBLE) WITH (
  'connector' = 'kafka', 'properties.bootstrap.servers' = '{bootstrap}', 'topic' = '{output}',
  'key.format' = 'raw', 'key.fields' = 'buyer',
  'value.format' = 'json', 'value.fields-include' = 'EXCEPT_KEY'
)""",
    "tumbling": """
CREATE TABLE results{number} (
  buyer STRING, starts BIGINT, `count` BIGINT, `sum` DOUBLE,
  PRIMARY KEY (buyer, starts) NOT ENFORCED
) WITH (
  'connector' = 'upsert-kafka', 'properties.bootstrap.servers' = '{bootstrap}',
  'topic' = '{output}', 'key.format' = 'json',
  'value.format' = 'json', 'value.fields-include' = 'EXCEPT_KEY'
)""",
}
QUERIES = {
    "filter": """
INSERT INTO results{number} SELECT buyer, `user`, price FROM orders{number} WHERE price > 50""",
    # Groups by minute: a window would emit each total only once.
    "tumbling": """
INSERT INTO results{number} SELECT buyer, starts, COUNT(*), SUM(price)
FROM (SELECT buyer, UNIX_TIMESTAMP(CAST(FLOOR(moment TO MINUTE) AS STRING)) AS starts, price
      FROM orders{number})
GROUP BY buyer, starts""",
}


def open_environment(state_dir: str, jar: str) -> TableEnvironment:
    """One task slot; checkpoints in files, since the size of those in memory is limited."""
    settings = Configuration()
    settings.set_string("pipeline.jars", f"file://{jar}")
    settings.set_string("parallelism.default", "1")
    settings.set_string("execution.checkpointing.interval", "5 s")
    settings.set_string("execution.checkpointing.dir", f"file://{state_dir}")
    settings.set_string("table.local-time-zone", "UTC")
    modes = EnvironmentSettings.new_instance().in_streaming_mode().with_configuration(settings)
    return TableEnvironment.create(modes.build())


def main(arguments: list[str]) -> None:
    """Run the jobs one after the other, the last one until SIGTERM."""
    workload, bootstrap, topic, state_dir, jar, *pairs = arguments
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    tables = open_environment(state_dir, jar)
    for number, (group, output) in enumerate(zip(pairs[::2], pairs[1::2], strict=True)):
        names = {"number": number, "bootstrap": bootstrap, "topic": topic}
        for text in (SOURCE, SINKS[workload]):
            tables.execute_sql(text.format(group=group, output=output, **names))
        job = tables.execute_sql(QUERIES[workload].format(**names)).get_job_client()
        assert job is not None
        sys.stdin.readline()
        job.cancel().result()


if __name__ == "__main__":
    main(sys.argv[1:])
