// What pgx sees of a server: one line of JSON for each step. The test runs it on two servers and compares.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

var ctx = context.Background()

func check(err error) {
	if err != nil {
		panic(err)
	}
}

func show(name string, value any) {
	label, err := json.Marshal(name)
	check(err)
	text, err := json.Marshal(value)
	check(err)
	fmt.Printf("%s\t%s\n", label, text)
}

func all(rows pgx.Rows, err error) [][]any {
	check(err)
	found, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) ([]any, error) { return row.Values() })
	check(err)
	return found
}

func failure(err error) []any {
	var reported *pgconn.PgError
	if errors.As(err, &reported) {
		return []any{reported.Code, reported.Severity, reported.Message, reported.Position}
	}
	return []any{fmt.Sprint(err)}
}

func values(conn *pgx.Conn) {
	rows, err := conn.Query(ctx, "SELECT * FROM typed ORDER BY id")
	check(err)
	var described [][]any
	for _, field := range rows.FieldDescriptions() {
		described = append(described, []any{field.Name, field.DataTypeOID, field.DataTypeSize, field.TypeModifier, field.Format})
	}
	show("typed", all(rows, nil))
	show("fields", described)
	show("tag", rows.CommandTag().String())

	var (
		i    int32
		l    int64
		f    float64
		t    string
		b    bool
		at   time.Time
		day  time.Time
		by   []byte
		ints []int32
		text []*string
		n    *string
		dur  time.Duration
		doc  map[string]any
		id   [16]byte
	)
	x := "x,\"y"
	check(conn.QueryRow(ctx,
		"SELECT $1::int4, $2::int8, $3::float8, $4::text, $5::bool, $6::timestamptz, $7::date, $8::bytea, $9::int4[], "+
			"$10::text[], $11::text, $12::interval, $13::jsonb, $14::uuid",
		-7, int64(1)<<62, 1e-300, "ü'\\", true, time.Date(2024, 1, 2, 3, 4, 5, 6000, time.UTC),
		time.Date(2024, 2, 29, 0, 0, 0, 0, time.UTC), []byte{0, 255}, []int32{1, -1}, []*string{&x, nil}, nil,
		90*time.Second, map[string]any{"a": []int{1}}, [16]byte{1, 2, 3},
	).Scan(&i, &l, &f, &t, &b, &at, &day, &by, &ints, &text, &n, &dur, &doc, &id))
	show("parameters", []any{i, l, f, t, b, at.UTC(), day, by, ints, text, n, dur, doc, id})
	show("inferred", all(conn.Query(ctx, "SELECT visits FROM visits WHERE url = $1 AND visits > $2", "./home", 3)))
	show("any", all(conn.Query(ctx, "SELECT url FROM visits WHERE url = ANY($1) ORDER BY 1", []string{"./home", "./cart"})))
}

func modes(conn *pgx.Conn) {
	for _, mode := range []pgx.QueryExecMode{
		pgx.QueryExecModeCacheStatement, pgx.QueryExecModeCacheDescribe, pgx.QueryExecModeDescribeExec,
		pgx.QueryExecModeExec, pgx.QueryExecModeSimpleProtocol,
	} {
		var found []any
		for _, url := range []string{"./home", "./shop", "none"} {
			found = append(found, all(conn.Query(ctx, "SELECT visits FROM visits WHERE url = $1", mode, url)))
		}
		show("mode "+mode.String(), found)
	}
	described, err := conn.Prepare(ctx, "mine", "SELECT url, visits FROM visits WHERE visits > $1 ORDER BY url")
	check(err)
	show("prepared", []any{described.ParamOIDs, len(described.Fields), all(conn.Query(ctx, "mine", 10))})
	check(conn.Deallocate(ctx, "mine"))
}

func batches(conn *pgx.Conn) {
	batch := &pgx.Batch{}
	for n := range 5 {
		batch.Queue("SELECT n + 1 FROM numbers WHERE n = $1", n)
	}
	batch.Queue("SELECT sum(visits)::int8 FROM visits")
	results := conn.SendBatch(ctx, batch)
	var found []any
	for range batch.Len() {
		var n int64
		check(results.QueryRow().Scan(&n))
		found = append(found, n)
	}
	check(results.Close())
	show("batch", found)

	failing := &pgx.Batch{}
	failing.Queue("SELECT 1")
	failing.Queue("SELECT * FROM nothing")
	failing.Queue("SELECT 2")
	show("failing batch", failure(conn.SendBatch(ctx, failing).Close()))
	multi, err := conn.PgConn().Exec(ctx, "SELECT 1; SELECT 2; SET application_name = 'go'").ReadAll()
	check(err)
	var tags []string
	for _, each := range multi {
		tags = append(tags, each.CommandTag.String())
	}
	show("several", tags)
	var out bytes.Buffer
	tag, err := conn.PgConn().CopyTo(ctx, &out, "COPY (SELECT url, visits FROM visits ORDER BY url) TO STDOUT CSV")
	check(err)
	show("copy", []any{tag.String(), out.String()})
}

func transactions(conn *pgx.Conn) {
	tx, err := conn.BeginTx(ctx, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly})
	check(err)
	show("levels", all(tx.Query(ctx, "SELECT current_setting('transaction_isolation'), current_setting('transaction_read_only')")))
	nested, err := tx.Begin(ctx)
	check(err)
	_, err = nested.Exec(ctx, "SELECT * FROM nothing")
	show("no relation", failure(err))
	_, err = nested.Exec(ctx, "SELECT 1")
	show("failed block", failure(err))
	check(nested.Rollback(ctx))
	_, err = tx.Exec(ctx, "DECLARE c CURSOR FOR SELECT n FROM numbers ORDER BY n")
	check(err)
	show("cursor", []any{all(tx.Query(ctx, "FETCH 2 FROM c")), all(tx.Query(ctx, "FETCH 1 FROM c"))})
	check(tx.Rollback(ctx))
	show("status", string(conn.PgConn().TxStatus()))
	_, err = conn.Exec(ctx, "SELECT 1 / $1::int", 0)
	show("division", failure(err))
	total := int64(0)
	rows, err := conn.Query(ctx, "SELECT n FROM numbers")
	check(err)
	for rows.Next() {
		var n int64
		check(rows.Scan(&n))
		total += n
	}
	check(rows.Err())
	show("many rows", total)
}

func stopping(address string) {
	conn, err := pgx.Connect(ctx, address)
	check(err)
	started := time.Now()
	soon, cancel := context.WithTimeout(ctx, 300*time.Millisecond)
	defer cancel()
	_, err = conn.Exec(soon, "SELECT pg_sleep(20)")
	show("timed out", []any{errors.Is(err, context.DeadlineExceeded), time.Since(started) < 2300*time.Millisecond})

	conn, err = pgx.Connect(ctx, address)
	check(err)
	go func() {
		time.Sleep(300 * time.Millisecond)
		check(conn.PgConn().CancelRequest(ctx))
	}()
	_, err = conn.Exec(ctx, "SELECT pg_sleep(20)")
	show("cancelled", failure(err))
	show("after", all(conn.Query(ctx, "SELECT 7")))
	check(conn.Close(ctx))
}

func pooled(address string) {
	pool, err := pgxpool.New(ctx, address)
	check(err)
	defer pool.Close()
	answers := make(chan int64)
	for n := range 40 {
		go func() {
			var found int64
			check(pool.QueryRow(ctx, "SELECT n FROM numbers WHERE n = $1", n).Scan(&found))
			answers <- found
		}()
	}
	total := int64(0)
	for range 40 {
		total += <-answers
	}
	show("pool", total)
}

func main() {
	address := os.Args[1]
	conn, err := pgx.Connect(ctx, address)
	check(err)
	values(conn)
	modes(conn)
	batches(conn)
	transactions(conn)
	check(conn.Close(ctx))
	stopping(address)
	pooled(address)
}
