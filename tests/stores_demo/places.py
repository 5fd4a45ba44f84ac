"""The services of the demo, started one by one; what is sent to them, and what other programs read of the results."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import boto3
import pyarrow.dataset
from confluent_kafka import Consumer, KafkaError, Producer, TopicPartition
from deltalake import DeltaTable
from moto.server import ThreadedMotoServer
from pyiceberg.catalog.sql import SqlCatalog

from mvserver.demo.check import Row
from mvserver.demo.kafka_broker import KafkaBroker
from tests.databricks.unity_server import TOKEN, UnityServer, serving
from tests.services.kafka import create_topic
from tests.services.kinesis import KinesisEmulator, Stream
from tests.services.postgres import LogicalPostgres, running_postgres
from tests.stores_demo import statements
from tests.stores_demo.story import Chapter

_KEY, _SECRET, _REGION = "demo", "demo-secret", "us-east-1"
_WAIT_S = 60.0


@dataclass(frozen=True)
class Places:
    broker: KafkaBroker
    stream: Stream
    kinesis: KinesisEmulator
    postgres: LogicalPostgres
    unity: UnityServer
    s3: str

    def properties(self) -> dict[str, str]:
        """Of CREATE STORE, by kind."""
        return {
            "kinesis": self.kinesis.properties,
            "kafka": self.broker.bootstrap,
            "postgresql": self.postgres.uris,
            "databricks": f"'uris' = '{self.unity.address}', 'databricks.app_token' = '{TOKEN}'",
            "s3": f"'databricks.cloud.region' = '{_REGION}', 's3.endpoint' = '{self.s3}',\n"
            f"    'aws.access_key_id' = '{_KEY}', 'aws.secret_access_key' = '{_SECRET}'",
        }

    def send_users(self, chapter: Chapter) -> None:
        self.stream.put([(user["userid"], json.dumps(user).encode()) for user in chapter.users])
        with self.postgres.connect() as connection, connection.transaction():
            for account in chapter.upserted:
                connection.execute(
                    f"INSERT INTO {statements.TABLE} VALUES (%s, %s) "
                    "ON CONFLICT (userid) DO UPDATE SET plan = excluded.plan",
                    account,
                )
            for user in chapter.deleted:
                connection.execute(f"DELETE FROM {statements.TABLE} WHERE userid = %s", (user,))

    def send_views(self, chapter: Chapter) -> None:
        producer = Producer({"bootstrap.servers": self.broker.bootstrap, "enable.idempotence": True, "log_level": 2})
        for view in chapter.views:
            producer.produce(statements.TOPIC, json.dumps(view), view["userid"])
        left = producer.flush(_WAIT_S)
        if left:
            raise TimeoutError(f"{left} page views were not taken by Kafka within {_WAIT_S:g} s")

    def enriched(self) -> list[Row]:
        """By a consumer of Kafka, of what is committed."""
        found: list[Row] = []
        consumer = Consumer(
            {
                "bootstrap.servers": self.broker.bootstrap,
                "group.id": uuid.uuid4().hex,
                "isolation.level": "read_committed",
                "enable.partition.eof": True,
                "log_level": 2,
            }
        )
        try:
            partitions = consumer.list_topics(statements.ENRICHED, _WAIT_S).topics[statements.ENRICHED].partitions
            consumer.assign([TopicPartition(statements.ENRICHED, partition, 0) for partition in partitions])
            left = len(partitions)
            while left:
                message = consumer.poll(_WAIT_S)
                if message is None:
                    raise TimeoutError(f"Kafka does not answer within {_WAIT_S:g} s")
                if (error := message.error()) is not None:
                    if error.code() != KafkaError._PARTITION_EOF:
                        raise ConnectionError(error.str())
                    left -= 1
                    continue
                record = json.loads(message.value())
                found.append((record["viewtime"], record["userid"], record["pageid"], record["regionid"]))
        finally:
            consumer.close()
        return found

    def delta(self) -> list[Row]:
        """By delta-rs, from the bucket."""
        table = self.unity.tables.get(f"main.web.delta_{statements.CUSTOMERS}")
        if table is None:
            return []
        options = {
            "AWS_ENDPOINT_URL": self.s3,
            "AWS_ALLOW_HTTP": "true",
            "AWS_REGION": _REGION,
            "AWS_ACCESS_KEY_ID": _KEY,
            "AWS_SECRET_ACCESS_KEY": _SECRET,
        }
        found = DeltaTable(table["storage_location"], storage_options=options)
        files = found.file_uris()
        if not files:
            return []
        s3 = pyarrow.fs.S3FileSystem(access_key=_KEY, secret_key=_SECRET, region=_REGION, endpoint_override=self.s3)
        paths = [file.removeprefix("s3://") for file in files]
        rows = pyarrow.dataset.dataset(paths, filesystem=s3).to_table().to_pylist()
        return [(row["userid"], row["regionid"], row["plan"], row["views"]) for row in rows]

    def iceberg(self, files: Path) -> list[Row]:
        """By pyiceberg, from the catalog in the folder."""
        catalog = SqlCatalog("default", uri=f"sqlite:///{files}/catalog.db?timeout={_WAIT_S:g}")
        try:
            rows = catalog.load_table(f"web.iceberg_{statements.VISITS}").scan().to_arrow().to_pylist()
            return [(row["regionid"], row["pageid"], row["views"]) for row in rows]
        finally:
            catalog.close()


@contextmanager
def started(folder: Path, tell: Callable[[str], None]) -> Iterator[Places]:
    """All services, each told when it answers. They are stopped with what they keep."""
    with ExitStack() as stack:
        tell("Apache Kafka (its jars are fetched the first time)")
        broker = KafkaBroker(folder / "kafka")
        stack.callback(broker.stop)
        broker.start()
        tell("Kinesis: kinesalite (by npm, the first time)")
        kinesis = KinesisEmulator()
        stack.callback(kinesis.stop)
        kinesis.start()
        tell("PostgreSQL with logical replication")
        postgres = stack.enter_context(running_postgres())
        tell("S3: moto; Unity Catalog: a small server of its REST API")
        s3 = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
        s3.start()
        stack.callback(s3.stop)
        host, port = s3.get_host_and_port()
        address = f"http://{host}:{port}"
        unity = stack.enter_context(serving())
        boto3.client(
            "s3", endpoint_url=address, region_name=_REGION, aws_access_key_id=_KEY, aws_secret_access_key=_SECRET
        ).create_bucket(Bucket=statements.BUCKET)
        create_topic(broker, statements.TOPIC, 2)
        stream = Stream(kinesis.client(), statements.STREAM).create(2)
        with postgres.connect() as connection:
            connection.execute(f"CREATE TABLE {statements.TABLE} (userid TEXT PRIMARY KEY, plan TEXT NOT NULL)")
        yield Places(broker, stream, kinesis, postgres, unity, address)
