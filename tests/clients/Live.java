import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.ResultSet;
import java.sql.Statement;

/** Reads a push query by pieces of a fetch size, and says each row when it has it. */
public final class Live {
    public static void main(String[] arguments) throws Exception {
        try (Connection connection = DriverManager.getConnection(arguments[0])) {
            connection.setAutoCommit(false);
            try (Statement statement = connection.createStatement()) {
                statement.setFetchSize(100);
                try (ResultSet rows = statement.executeQuery("SELECT n, url FROM clicks")) {
                    while (rows.next()) {
                        System.out.println(rows.getLong(1) + " " + rows.getString(2));
                        System.out.flush();
                        if (rows.getLong(1) == 4) {
                            break;
                        }
                    }
                }
            }
            connection.commit();
            System.out.println("done");
        }
    }
}
