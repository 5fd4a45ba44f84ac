"""Spark's Kafka connector, in the versions that PySpark's own jars go with."""

from __future__ import annotations

from spark_sinks.jars import Connector, Jar

CONNECTOR = Connector(
    "the Kafka connector of Spark",
    (
        Jar("org.apache.spark", "spark-sql-kafka-0-10_2.13", "4.2.0"),
        Jar("org.apache.spark", "spark-token-provider-kafka-0-10_2.13", "4.0.0"),  # the newest to be had; same classes
        Jar("org.apache.kafka", "kafka-clients", "3.9.2"),
        Jar("org.apache.commons", "commons-pool2", "2.13.1"),
    ),
    marks=("org/apache/kafka/clients/consumer/KafkaConsumer.class",),
)

# With all that it needs inside: its parts would bring other versions of what PySpark's own jars have.
MSK_IAM = Connector(
    "Amazon's authentication for Kafka",
    (Jar("software.amazon.msk", "aws-msk-iam-auth", "2.3.5", "all"),),
)
