-- What each customer orders in an hour: a stream of orders, a windowed table that a query keeps up
-- to date, and rows read from it. Run it on an engine of its own:
--
--   millstream sql --data-dir /tmp/order-totals -f examples/order_totals.sql

SET 'auto.offset.reset' = 'earliest';

CREATE OR REPLACE STREAM orders
  (customer STRING KEY, item STRING, amount DECIMAL(9, 2), ordered_at BIGINT)
  WITH (KAFKA_TOPIC = 'orders', VALUE_FORMAT = 'JSON', PARTITIONS = 1, TIMESTAMP = 'ordered_at');

CREATE TABLE IF NOT EXISTS order_totals AS
  SELECT customer, COUNT(*) AS orders, SUM(amount) AS total
  FROM orders
  WINDOW TUMBLING (SIZE 1 HOUR)
  GROUP BY customer
  EMIT CHANGES;

INSERT INTO orders VALUES ('ann', 'flour', 12.50, 1700000000000);
INSERT INTO orders VALUES ('bob', 'bran', 3.20, 1700000060000);
INSERT INTO orders VALUES ('ann', 'oats', 7.50, 1700000120000);
INSERT INTO orders VALUES ('ann', 'rye', 4.00, 1700003600000);
INSERT INTO orders VALUES ('eve', 'flour', 25.00, 1700003660000);

-- A push query: changes as they come. The last order is counted when its customer is seen.
SELECT customer, orders, total FROM order_totals WHERE customer = 'eve' EMIT CHANGES LIMIT 1;

-- A pull query: what the table holds now.
SELECT customer, TIMESTAMPTOSTRING(windowstart, 'HH:mm', 'UTC') AS from_time, orders, total
  FROM order_totals
  WHERE customer = 'ann';
