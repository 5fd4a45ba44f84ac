"""What Superset makes of a database, asked by its REST interface: one line of JSON for each step."""

import json
import logging
import sys

logging.disable(logging.WARNING)

from superset.app import create_app  # noqa: E402 - its imports log

ADMIN = "admin"


def show(name, value):
    print(f"{json.dumps(name)}\t{json.dumps(value, sort_keys=True)}", flush=True)


class Rest:
    def __init__(self, app):
        self.client = app.test_client()
        told = self.post("security/login", {"username": ADMIN, "password": ADMIN, "provider": "db"})
        self.headers = {"Authorization": f"Bearer {told['access_token']}"}

    headers = None

    def post(self, path, body):
        return self._answer(self.client.post(f"/api/v1/{path}", json=body, headers=self.headers))

    def get(self, path):
        return self._answer(self.client.get(f"/api/v1/{path}", headers=self.headers))

    def _answer(self, response):
        if response.status_code >= 400:
            raise SystemExit(f"{response.request.path} {response.status_code}: {response.get_data(as_text=True)}")
        return response.get_json()


def prepare(app):
    """Its own database and an administrator."""
    from flask_appbuilder import Model
    from superset.extensions import appbuilder, db

    with app.app_context():
        Model.metadata.create_all(db.engine)
        appbuilder.add_permissions(update_perms=True)
        manager = appbuilder.sm
        manager.sync_role_definitions()
        manager.add_user(ADMIN, "a", "b", "a@example.com", manager.find_role("Admin"), password=ADMIN)


def chart(rest, dataset, **query):
    told = rest.post(
        "chart/data",
        {"datasource": {"id": dataset, "type": "table"}, "queries": [query], "result_format": "json", "force": True},
    )
    (result,) = told["result"]
    return {"data": result["data"], "rows": result["rowcount"], "status": result["status"]}


def explore(rest, uri):
    show("tested", rest.post("database/test_connection/", {"sqlalchemy_uri": uri, "database_name": "views"})["message"])
    database = rest.post("database/", {"database_name": "views", "sqlalchemy_uri": uri, "expose_in_sqllab": True})["id"]
    show("schemas", sorted(rest.get(f"database/{database}/schemas/?q=(force:!t)")["result"]))
    tables = rest.get(f"database/{database}/tables/?q=(schema_name:public,force:!t)")["result"]
    show("tables", sorted((each["value"], each["type"]) for each in tables))
    described = rest.get(f"database/{database}/table_metadata/?name=typed&schema=public")
    show("columns", [(column["name"], column["type"]) for column in described["columns"]])
    datasets = {
        name: rest.post("dataset/", {"database": database, "schema": "public", "table_name": name})["id"]
        for name in ("typed", "visits")
    }
    made = rest.get(f"dataset/{datasets['typed']}")["result"]
    show("dataset", sorted((column["column_name"], column["type"], column["is_dttm"]) for column in made["columns"]))
    charts(rest, datasets)
    ran = rest.post(
        "sqllab/execute/",
        {"database_id": database, "sql": "SELECT url, visits FROM visits ORDER BY visits DESC", "runAsync": False,
         "schema": "public", "queryLimit": 2, "client_id": "probe", "expand_data": True},
    )  # fmt: skip
    show("sql lab", [ran["status"], ran["data"], [column["type"] for column in ran["columns"]]])


def charts(rest, datasets):
    total = {"expressionType": "SIMPLE", "aggregate": "SUM", "column": {"column_name": "visits"}, "label": "total"}
    show(
        "filtered chart",
        chart(
            rest, datasets["visits"], columns=["url"], metrics=[total, "count"], row_limit=10,
            filters=[{"col": "url", "op": "IN", "val": ["./home", "./shop"]}, {"col": "visits", "op": ">", "val": 5}],
            orderby=[[total, False]],
        ),
    )  # fmt: skip
    amount = {"expressionType": "SQL", "sqlExpression": "SUM(amount)", "label": "amount"}
    for grain in ("PT1M", "P1D", "P1W", "P1M", "P3M", "P1Y"):
        axis = {"columnType": "BASE_AXIS", "expressionType": "SQL", "sqlExpression": "moment", "label": "moment",
                "timeGrain": grain}  # fmt: skip
        show(
            f"time grain {grain}",
            chart(
                rest, datasets["typed"], columns=[axis], metrics=[amount], granularity="moment",
                time_range="2024-01-01 : 2024-02-01", row_limit=100,
            ),
        )  # fmt: skip
    show(
        "samples",
        chart(
            rest,
            datasets["typed"],
            columns=["id", "name", "amount", "day"],
            metrics=[],
            row_limit=1,
            orderby=[["id", True]],
        ),
    )


def main():
    app = create_app()
    prepare(app)
    explore(Rest(app), sys.argv[1])


main()
