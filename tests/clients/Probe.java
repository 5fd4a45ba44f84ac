import java.math.BigDecimal;
import java.sql.*;
import java.util.Arrays;

/** Says what PostgreSQL's JDBC driver sees of a server, one line for each thing. */
public class Probe {
    static void say(String name, Object value) {
        System.out.println(name + "=" + value);
    }

    public static void main(String[] arguments) throws Exception {
        try (Connection connection = DriverManager.getConnection(arguments[0])) {
            metadata(connection.getMetaData());
            query(connection);
            types(connection);
            batches(connection);
            transactions(connection);
            stopping(connection);
            say("valid", connection.isValid(5));
        }
    }

    static void metadata(DatabaseMetaData data) throws SQLException {
        say("product", data.getDatabaseProductName() + " " + data.getDatabaseMajorVersion());
        try (ResultSet tables = data.getTables(null, "public", "%", new String[] {"MATERIALIZED VIEW"})) {
            while (tables.next()) say("table", tables.getString("TABLE_NAME") + " " + tables.getString("TABLE_TYPE"));
        }
        try (ResultSet columns = data.getColumns(null, "public", "visits", "%")) {
            while (columns.next()) {
                say("column", columns.getString("COLUMN_NAME") + " " + columns.getString("TYPE_NAME") + " "
                    + columns.getInt("DATA_TYPE") + " " + columns.getInt("ORDINAL_POSITION"));
            }
        }
        try (ResultSet schemas = data.getSchemas()) {
            StringBuilder names = new StringBuilder();
            while (schemas.next()) names.append(schemas.getString(1)).append(' ');
            say("schemas", names.toString().contains("public "));
        }
        try (ResultSet indexes = data.getIndexInfo(null, "public", "visits", true, false)) {
            while (indexes.next()) say("index", indexes.getString("COLUMN_NAME") + " " + indexes.getBoolean("NON_UNIQUE"));
        }
        try (ResultSet kinds = data.getTypeInfo()) {
            int count = 0;
            while (kinds.next()) count++;
            say("typeinfo", count > 20);
        }
    }

    static void query(Connection connection) throws SQLException {
        try (PreparedStatement statement = connection.prepareStatement("SELECT visits FROM visits WHERE url = ?")) {
            for (int round = 0; round < 8; round++) {  // after five the driver prepares on the server
                statement.setString(1, "./home");
                try (ResultSet rows = statement.executeQuery()) {
                    rows.next();
                    if (rows.getLong(1) != 30) throw new IllegalStateException("round " + round);
                }
            }
            say("parameters", statement.getParameterMetaData().getParameterCount());
            say("result", statement.getMetaData().getColumnName(1) + " " + statement.getMetaData().getColumnTypeName(1));
        }
        connection.setAutoCommit(false);
        try (Statement statement = connection.createStatement()) {
            statement.setFetchSize(1000);
            long total = 0;
            try (ResultSet rows = statement.executeQuery("SELECT n FROM numbers")) {
                while (rows.next()) total += rows.getLong(1);
            }
            say("fetched", total);
        }
        connection.commit();
        connection.setAutoCommit(true);
    }

    static void types(Connection connection) throws SQLException {
        String sql = "SELECT * FROM typed WHERE id = ? AND amount = ? AND day = ? AND moment = ? AND flag = ?";
        try (PreparedStatement statement = connection.prepareStatement(sql)) {
            statement.setInt(1, 1);
            statement.setBigDecimal(2, new BigDecimal("12.30"));
            statement.setObject(3, java.time.LocalDate.of(2024, 2, 29));
            statement.setObject(4, java.time.LocalDateTime.of(2024, 1, 2, 3, 4, 5, 678901000));
            statement.setBoolean(5, true);
            for (int round = 0; round < 7; round++) {  // text at first, binary later
                try (ResultSet row = statement.executeQuery()) {
                    if (!row.next()) throw new IllegalStateException("no row in round " + round);
                    String seen = row.getInt("id") + " " + row.getBoolean("flag") + " " + row.getShort("small") + " "
                        + row.getLong("big") + " " + row.getFloat("real4") + " " + row.getDouble("real8") + " "
                        + row.getBigDecimal("amount") + " " + row.getString("name") + " "
                        + Arrays.toString(row.getBytes("bytes")) + " " + row.getObject("day", java.time.LocalDate.class)
                        + " " + row.getObject("clock", java.time.LocalTime.class) + " "
                        + row.getObject("moment", java.time.LocalDateTime.class) + " "
                        + row.getObject("instant", java.time.OffsetDateTime.class).toInstant();
                    if (round == 0 || round == 6) say("typed", seen);
                }
            }
        }
        try (Statement statement = connection.createStatement();
             ResultSet row = statement.executeQuery("SELECT name FROM typed WHERE id = 2")) {
            row.next();
            say("null", row.getString(1) == null && row.wasNull());
        }
    }

    static void batches(Connection connection) throws SQLException {
        try (Statement statement = connection.createStatement()) {
            statement.addBatch("SET application_name = 'one'");
            statement.addBatch("SET application_name = 'two'");
            say("batch", statement.executeBatch().length);
            try (ResultSet row = statement.executeQuery("SHOW application_name")) {
                row.next();
                say("application", row.getString(1));
            }
        }
    }

    static void transactions(Connection connection) throws SQLException {
        connection.setAutoCommit(false);
        connection.setTransactionIsolation(Connection.TRANSACTION_REPEATABLE_READ);
        say("isolation", connection.getTransactionIsolation() == Connection.TRANSACTION_REPEATABLE_READ);
        try (Statement statement = connection.createStatement()) {
            Savepoint savepoint = connection.setSavepoint("s");
            try {
                statement.executeQuery("SELECT * FROM nothing");
            } catch (SQLException error) {
                say("error", error.getSQLState() + " " + error.getMessage().split("\n")[0]);
            }
            connection.rollback(savepoint);
            try (ResultSet row = statement.executeQuery("SELECT 7")) {
                row.next();
                say("after", row.getInt(1));
            }
        }
        connection.commit();
        connection.setTransactionIsolation(Connection.TRANSACTION_READ_COMMITTED);
        connection.setAutoCommit(true);
    }

    static void stopping(Connection connection) throws Exception {
        try (Statement statement = connection.createStatement()) {
            Thread canceller = new Thread(() -> {
                try {
                    Thread.sleep(300);
                    statement.cancel();
                } catch (Exception error) {
                    throw new RuntimeException(error);
                }
            });
            canceller.start();
            try {
                statement.executeQuery("SELECT count(*) FROM numbers a, numbers b WHERE a.n * b.n % 7 = 3");
            } catch (SQLException error) {
                say("cancelled", error.getSQLState());
            }
            canceller.join();
        }
        try (Statement statement = connection.createStatement()) {
            statement.setQueryTimeout(1);
            try {
                statement.executeQuery("SELECT count(*) FROM numbers a, numbers b WHERE a.n * b.n % 7 = 3");
            } catch (SQLException error) {
                say("timed out", error.getSQLState());
            }
        }
    }
}
