"""The programs of the dialect's own introduction, and topics that they can read."""

from __future__ import annotations

TOPICS = (
    "CREATE STREAM countries (label VARCHAR, continent VARCHAR) WITH ('store' = {store}, 'topic' = 'countries', "
    "'value.format' = 'json', 'key.format' = 'primitive', 'key.type' = 'VARCHAR', 'topic.partitions' = 1, "
    "'topic.replicas' = 1)",
    "CREATE STREAM merchants (name VARCHAR, surname VARCHAR, address STRUCT<country VARCHAR, city VARCHAR>, "
    "language VARCHAR, platform VARCHAR) WITH ('store' = {store}, 'topic' = 'merchants', 'value.format' = 'json', "
    "'key.format' = 'primitive', 'key.type' = 'VARCHAR', 'topic.partitions' = 1, 'topic.replicas' = 1)",
    "CREATE STREAM input (field1 INTEGER, field2 VARCHAR, field3 VARCHAR) WITH ('store' = {store}, "
    "'topic' = 'input-topic', 'value.format' = 'json', 'key.format' = 'primitive', 'key.type' = 'VARCHAR', "
    "'topic.partitions' = 1, 'topic.replicas' = 1)",
    "CREATE STREAM amounts (v INTEGER) WITH ('store' = {store}, 'topic' = 'amounts', 'value.format' = 'primitive', "
    "'key.format' = 'primitive', 'key.type' = 'VARCHAR', 'topic.partitions' = 1, 'topic.replicas' = 1)",
)

EXPRESSIONS = """
SET defaults.topic.autocreate = true;
INSERT INTO target-topic
SELECT STREAM
    CONCAT('a', 'b') AS result1
    , (1 + field1) AS result2
    , field2 AS result3
    , CASE
        WHEN field3 = 'Robert' THEN 'It''s bobby'
        WHEN field3 = 'William' THEN 'It''s willy'
        ELSE 'Unknown'
      END AS who_is_it
FROM input-topic
WHERE LENGTH(field2) > 5;
"""

SUMS = """
SET defaults.topic.autocreate = true;
WITH events AS (SELECT STREAM * FROM amounts);
WITH state AS (SELECT TABLE * FROM amounts);
INSERT INTO sums-of-stream SELECT STREAM SUM(_value) AS total FROM events GROUP BY _key;
INSERT INTO sums-of-table SELECT TABLE SUM(_value) AS total FROM state GROUP BY _key;
"""

MERCHANTS = """
SET defaults.topic.autocreate=true;
SET commit.interval.ms='1000';
SET enable.auto.commit=false;
SET auto.offset.reset='earliest';

WITH countriesStream AS (
  SELECT STREAM *
  FROM countries
);

WITH merchantsStream AS (
  SELECT STREAM *
  FROM merchants
);


WITH merchantsWithCountryInfoStream AS (
  SELECT STREAM
    m._key AS l_key
    , CONCAT(surname, ', ', name) AS fullname
    , address.country
    , language
    , platform
  FROM merchantsStream AS m
        JOIN countriesStream AS c
            ON m.address.country = c._key
  WITHIN 1h
);

WITH merchantsCorrectKey AS(
  SELECT STREAM
    l_key AS _key
    , fullname
    , country
    , language
    , platform
  FROM merchantsWithCountryInfoStream
);

INSERT INTO currentMerchants
SELECT STREAM *
FROM merchantsCorrectKey;

INSERT INTO merchantsPerPlatform
SELECT TABLE
  COUNT(*) AS merchants
FROM merchantsCorrectKey
GROUP BY platform;
"""
