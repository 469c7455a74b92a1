package sqlt;

import org.apache.flink.table.api.*;

/** All in SQL, with text blocks. */
public class SqlTickers {
    private static final String TICKER_DDL = """
        CREATE TABLE Ticker (
          symbol STRING,
          price DOUBLE,
          tax DECIMAL(10, 2),
          `rowtime` TIMESTAMP(3),
          total AS price + CAST(tax AS DOUBLE),
          WATERMARK FOR rowtime AS rowtime - INTERVAL '1' MINUTE
        ) WITH (
          'connector' = 'kafka',
          'topic' = 'ticker',
          'properties.bootstrap.servers' = 'broker:9092',
          'properties.group.id' = 'g',
          'scan.startup.mode' = 'latest-offset',
          'format' = 'json'
        )""";

    public static void main(String[] args) {
        TableEnvironment tEnv = TableEnvironment.create(EnvironmentSettings.inStreamingMode());
        tEnv.executeSql(TICKER_DDL);
        tEnv.executeSql("CREATE TABLE Files (id BIGINT, name VARCHAR(20), ts TIMESTAMP_LTZ(3), WATERMARK FOR ts AS ts) "
            + "WITH ('connector' = 'filesystem', 'path' = '/data/in', 'format' = 'csv')");
        tEnv.executeSql("CREATE TABLE Dips (symbol STRING, bottom DOUBLE) WITH ('connector' = 'print')");
        tEnv.executeSql("""
            INSERT INTO Dips
            SELECT symbol, bottom
            FROM Ticker
            MATCH_RECOGNIZE (
                PARTITION BY symbol
                ORDER BY rowtime
                MEASURES LAST(DOWN.price) AS bottom
                ONE ROW PER MATCH
                AFTER MATCH SKIP TO LAST UP
                PATTERN (STRT DOWN+ UP) WITHIN INTERVAL '1' HOUR
                DEFINE
                    DOWN AS DOWN.price < LAST(DOWN.price, 1) OR (LAST(DOWN.price, 1) IS NULL AND DOWN.price < STRT.price),
                    UP AS UP.price > LAST(DOWN.price)
            )""");
        Table t = tEnv.sqlQuery("SELECT T.a FROM Files MATCH_RECOGNIZE (PARTITION BY name ORDER BY ts MEASURES A.id AS a PATTERN (A B) DEFINE A AS A.id > 3, B AS B.id < A.id) AS T");
        t.execute().print();
    }
}
