package org.example.sql;

import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.table.api.Table;
import org.apache.flink.table.api.bridge.java.StreamTableEnvironment;

/** MATCH_RECOGNIZE in a program. */
public class SqlLogins {

    private static final String TABLE = "logins";

    public static void main(String[] args) {
        StreamExecutionEnvironment env = StreamExecutionEnvironment.getExecutionEnvironment();
        StreamTableEnvironment tables = StreamTableEnvironment.create(env);
        tables.executeSql("CREATE TABLE " + TABLE + " (\n"
            + "  name STRING, at TIMESTAMP(3), result STRING,\n"
            + "  WATERMARK FOR at AS at - INTERVAL '5' SECOND\n"
            + ") WITH ('connector' = 'kafka', 'topic' = 'logins', 'format' = 'json')");
        Table alerts = tables.sqlQuery("""
            SELECT name, fails
            FROM logins MATCH_RECOGNIZE (
              PARTITION BY name ORDER BY at
              MEASURES COUNT(F.at) AS fails, O.at AS in_at
              AFTER MATCH SKIP PAST LAST ROW
              PATTERN (F{3,} O) WITHIN INTERVAL '5' MINUTE
              DEFINE F AS F.result = 'fail', O AS O.result = 'ok'
            )
            """);
        alerts.execute().print();
    }
}
