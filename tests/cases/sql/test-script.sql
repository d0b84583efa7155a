-- Two streams for cases that RUN this SCRIPT: one that is read, and one that is made of it.
CREATE STREAM FOO (ID INT KEY, COL1 INT) WITH (FORMAT = 'JSON', KAFKA_TOPIC = 'foo');
CREATE STREAM BAR AS SELECT ID, COL1 FROM FOO EMIT CHANGES;
