-- A shop's evening: orders and page views of customers, seven queries over them. README.md beside
-- this file says how to run it on either engine, and why both give the same results.

SET 'auto.offset.reset' = 'earliest';

CREATE STREAM orders
  (customer STRING KEY, order_id BIGINT, shop STRING, item STRING, cents BIGINT)
  WITH (KAFKA_TOPIC = 'orders', VALUE_FORMAT = 'JSON', PARTITIONS = 4);
CREATE STREAM views
  (customer STRING KEY, page STRING, stay INT)
  WITH (KAFKA_TOPIC = 'views', VALUE_FORMAT = 'JSON', PARTITIONS = 4);
CREATE TABLE customers
  (customer STRING PRIMARY KEY, name STRING, country STRING, level INT)
  WITH (KAFKA_TOPIC = 'customers', VALUE_FORMAT = 'JSON', PARTITIONS = 4);
CREATE TABLE shops
  (shop STRING PRIMARY KEY, city STRING, fee BIGINT)
  WITH (KAFKA_TOPIC = 'shops', VALUE_FORMAT = 'JSON', PARTITIONS = 4);

-- 1. A filter: orders above 90.00, with a column that is computed.
CREATE STREAM large_orders WITH (KAFKA_TOPIC = 'large_orders') AS
  SELECT customer, order_id, UCASE(item) AS item, cents, cents / 100 AS whole
  FROM orders
  WHERE cents > 9000
  EMIT CHANGES;

-- 2. A stream joined with a table: each order with the city and the fee of its shop. Orders lie by
--    customer, so they go to the partitions of their shops first.
CREATE STREAM orders_with_shops WITH (KAFKA_TOPIC = 'orders_with_shops') AS
  SELECT o.shop AS shop, o.customer AS customer, o.order_id AS order_id, s.city AS city,
         o.cents - s.fee AS cents_left
  FROM orders o
  JOIN shops s ON o.shop = s.shop
  EMIT CHANGES;

-- 3. A windowed aggregate: what each shop sells in a minute.
CREATE TABLE shop_minutes WITH (KAFKA_TOPIC = 'shop_minutes') AS
  SELECT shop, COUNT(*) AS orders, SUM(cents) AS cents, MAX(cents) AS largest
  FROM orders
  WINDOW TUMBLING (SIZE 1 MINUTE, GRACE PERIOD 1 DAY)
  GROUP BY shop
  EMIT CHANGES;

-- 4. Sessions: visits of customers end after 30 seconds without a view. Views that come more than
--    a minute too late are left out.
CREATE TABLE visits WITH (KAFKA_TOPIC = 'visits') AS
  SELECT customer, COUNT(*) AS pages, SUM(stay) AS stay, LATEST_BY_OFFSET(page) AS last_page
  FROM views
  WINDOW SESSION (30 SECONDS, GRACE PERIOD 1 MINUTE)
  GROUP BY customer
  EMIT CHANGES;

-- 5. Two streams joined: what a customer looked at in the 3 seconds before an order.
CREATE STREAM views_before_orders WITH (KAFKA_TOPIC = 'views_before_orders') AS
  SELECT o.customer AS customer, o.order_id AS order_id, o.item AS item, v.page AS page
  FROM orders o
  JOIN views v WITHIN (3 SECONDS, 0 SECONDS) GRACE PERIOD 1 DAY ON o.customer = v.customer
  EMIT CHANGES;

-- 6. Two tables joined: customers with what they have spent so far.
CREATE TABLE spending WITH (KAFKA_TOPIC = 'spending') AS
  SELECT customer, COUNT(*) AS orders, SUM(cents) AS cents
  FROM orders
  GROUP BY customer
  EMIT CHANGES;
CREATE TABLE accounts WITH (KAFKA_TOPIC = 'accounts') AS
  SELECT c.customer AS customer, c.name AS name, c.country AS country, s.orders AS orders,
         s.cents * c.level / 100 AS bonus
  FROM customers c
  JOIN spending s ON c.customer = s.customer
  EMIT CHANGES;
